"""Errors of one sample: they become records, and the others go on."""

from airjudge.errors.root import AirjudgeError


class EvaluationError(AirjudgeError):
    """One sample cannot be scored; the others can."""

    kind = "evaluation"


class DatasetError(EvaluationError):
    """A line of the data set does not describe a sample."""

    kind = "bad_line"
    hint = "Each line needs what the metric reads: by default user_input, reference and retrieved_contexts (a list)."

    def __init__(self, path: str, line: int, reason: str) -> None:
        """Keep the place (`line` counts from 1) and the reason."""
        super().__init__(path, line, reason)
        self.path, self.line, self.reason = path, line, reason

    def __str__(self) -> str:
        """Say where and what, as compilers do: path:line: reason."""
        return f"{self.path}:{self.line}: {self.reason}"


class DuplicateId(DatasetError):
    """An id that an earlier sample of the data set has."""

    kind = "duplicate_id"
    hint = "Give every sample an id of its own, or leave ids out to number them by line."


class EmptyContexts(EvaluationError):
    """There is no context to judge against."""

    kind = "empty_contexts"
    hint = "Use --empty-contexts zero to count an empty retrieval as recall 0."

    def __init__(self, field: str = "retrieved_contexts") -> None:
        """Keep the field that holds what was retrieved."""
        super().__init__(field)
        self.field = field

    def __str__(self) -> str:
        """Say what is empty."""
        return f"{self.field} is empty or all blank"


class StatementsMissing(EvaluationError):
    """The run that statements are taken from has none of this sample."""

    kind = "no_statements"
    hint = "Take statements from a run over the same samples, in which this one did not fail."

    def __str__(self) -> str:
        """Say what is missing."""
        return "the run that statements are taken from has none of a sample with this id"


class NotRecorded(EvaluationError):
    """A judge whose verdicts came as a file did not rule on all statements of a sample."""

    kind = "not_recorded"
    hint = "Score the sample by a judge that can be asked, or leave it out of the data."

    def __init__(self, judge: str, n_missing: int, n_statements: int) -> None:
        """Keep who did not rule, and how many statements of how many that concerns."""
        super().__init__(judge, n_missing, n_statements)
        self.judge, self.n_missing, self.n_statements = judge, n_missing, n_statements

    def __str__(self) -> str:
        """Say what is missing."""
        return f"{self.judge} ruled on {self.n_statements - self.n_missing} of {self.n_statements} statements"


class AnswerMissing(EvaluationError):
    """A batch of answers has none to a question."""

    kind = "answer_missing"
    hint = "Import all files that the batch brought back, that of the errors too."

    def __str__(self) -> str:
        """Say what is missing."""
        return "the batch holds no answer to this question"


class AnswersDiffer(EvaluationError):
    """A batch has two answers to a question, which contradict each other."""

    kind = "answers_differ"
    hint = "Import the answers of one batch alone."

    def __str__(self) -> str:
        """Say what is wrong."""
        return "the batch holds answers to this question that contradict each other"


class PromptTooLong(EvaluationError):
    """The prompt and its reply do not fit the model's context."""

    kind = "prompt_too_long"
    hint = (
        "Retrieve fewer or shorter contexts, serve the judge with a longer context, or have contexts read in parts: "
        "--long-contexts split."
    )

    def __init__(self, prompt_tokens: int | None, limit: int | None) -> None:
        """Keep both counts, in tokens of the judge's tokenizer; None where the server did not tell."""
        super().__init__(prompt_tokens, limit)
        self.prompt_tokens, self.limit = prompt_tokens, limit

    def __str__(self) -> str:
        """Give both token counts."""
        has = "too many" if self.prompt_tokens is None else self.prompt_tokens
        return f"the prompt has {has} tokens" + (
            "" if self.limit is None else f", the judge reads at most {self.limit}"
        )


class ReplyRefused(EvaluationError):
    """A reply does not match the automaton of the schema that it was asked under."""

    kind = "reply_refused"
    hint = "The server did not enforce the schema for this request; look at its log."

    def __init__(self, reply: str) -> None:
        """Keep the reply, shortened to what a person can use."""
        super().__init__(reply[:200])
        self.reply = reply[:200]

    def __str__(self) -> str:
        """Quote the reply as a Python literal, so that control characters stay text."""
        return f"the reply does not match its schema: {self.reply!r}"


class ReplyInvalid(EvaluationError):
    """A reply has the form that was asked for, and the caller's model refuses what it says."""

    kind = "reply_invalid"
    hint = "The model has a rule that its JSON schema does not tell: say it as a type, or judge by a larger model."

    def __init__(self, model: str, reason: str) -> None:
        """Keep the model's name and what it says."""
        super().__init__(model, reason[:200])
        self.model, self.reason = model, reason[:200]

    def __str__(self) -> str:
        """Say who refuses it, and why."""
        return f"{self.model} refuses the reply: {self.reason}"


class ReplyTruncated(EvaluationError):
    """A reply was cut by its token limit before it held a verdict."""

    kind = "reply_truncated"
    hint = "Use --method pointwise, whose reply is one token."

    def __str__(self) -> str:
        """Say what happened."""
        return "the reply was cut before its verdict"


class ReplyRunaway(EvaluationError):
    """A reply ran into its token limit with whitespace or one repeated piece."""

    kind = "reply_runaway"
    hint = "Use --method pointwise, or another judge: this one loops on the sample."

    def __str__(self) -> str:
        """Say what happened."""
        return "the reply ran to its limit with nothing but whitespace or repetition"


class RequestTimeout(EvaluationError):
    """No reply came within the time limit for one request."""

    kind = "timeout"
    hint = "Raise --timeout, or lower --concurrency so that requests wait less."

    def __init__(self, timeout_s: float) -> None:
        """Keep the limit, in seconds."""
        super().__init__(timeout_s)
        self.timeout_s = timeout_s

    def __str__(self) -> str:
        """Give the limit."""
        return f"no reply within {self.timeout_s:g} s"


class RequestFailed(EvaluationError):
    """The server kept failing on one request."""

    kind = "request_failed"
    hint = "Look at the server's log; the other samples went on."

    def __init__(self, reason: str, tries: int) -> None:
        """Keep the last reason and how often it was tried."""
        super().__init__(reason, tries)
        self.reason, self.tries = reason, tries

    def __str__(self) -> str:
        """Give the last reason and the number of tries."""
        return f"{self.reason} (tried {self.tries} time{'s' * (self.tries != 1)})"
