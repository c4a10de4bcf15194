"""The error tree. A caller's misuse is ValueError; what the world does wrong is one of these.

AirjudgeError                    every error of ours; `kind` for machines, `hint` is the next step
├── EvaluationError              one sample cannot be scored; becomes a record, the others go on
│   ├── DatasetError             a line of the data set does not describe a sample
│   ├── DuplicateId              an id that an earlier sample has
│   ├── NotRecorded              a judge whose verdicts came as a file ruled not on all statements
│   ├── AnswerMissing            a batch of answers has none to a question
│   ├── AnswersDiffer            a batch has two answers to a question, which contradict each other
│   ├── EmptyContexts            no context to judge against, where that was asked to be an error
│   ├── PromptTooLong            the prompt does not fit the model's context
│   ├── ReplyRefused             the reply does not match the schema's automaton
│   ├── ReplyTruncated           the reply was cut before its verdict
│   ├── ReplyRunaway             the reply ran to its limit with whitespace or repetition
│   ├── RequestTimeout           no reply within the time limit
│   └── RequestFailed            the server kept failing, or closed the connection
├── InputError                   a path or an option cannot be used at all
│   ├── CalibrationDiffers       the calibration was made for another judge
│   ├── RunDiffers               the folder holds a run of another judge, other settings or other data
│   ├── RunLocked                another process writes into the folder
│   └── StatementsDiffer         runs do not hold the same statements
├── RunInterrupted               somebody asked the run to stop; the same command goes on with it
├── StorageFailed                what must be kept cannot be written or read back
├── JudgeError                   no sample can be judged: the run stops
│   ├── JudgeUnreachable         nobody answers at the address
│   ├── JudgeRemote              the address is neither loopback nor private
│   ├── JudgeUnauthorized        the server wants another key
│   ├── JudgeNotServed           the server serves another model
│   ├── JudgeQuota               the account at a provider has nothing left to spend
│   ├── BudgetSpent              the run has cost what it may cost
│   ├── JudgeForeign             what answers is not an OpenAI-compatible server
│   ├── JudgeChanged             a server came back with another model, version or enforcement
│   ├── JudgesDiffer             the servers of one pool are not the same judge
│   ├── JudgeTooOld              the server is older than what we can trust
│   ├── EnforcementMissing       the server ignores the reply schema
│   └── SchemaNotCompiled        the server cannot compile the reply schema
├── ServerFailed                 a vLLM process of ours did not come up, or died
├── ProfileError                 a judge profile is unknown or malformed
└── WeightsError                 weights cannot be brought, verified or prepared
    ├── WeightsMissing           they are not in the cache
    ├── WeightsMismatch          a file is not the one the profile names
    ├── WeightsUnpinned          a file has no recorded hash, where one is required
    └── WeightsUnavailable       a source cannot be reached, or the disk is full
"""

from typing import ClassVar


class AirjudgeError(Exception):
    """An error that a user can act on.

    The fields are kept in `args`, so that every error survives pickling.
    """

    kind: ClassVar[str] = "error"
    hint: str = ""


class EvaluationError(AirjudgeError):
    """One sample cannot be scored; the others can."""

    kind = "evaluation"


class DatasetError(EvaluationError):
    """A line of the data set does not describe a sample."""

    kind = "bad_line"
    hint = "Each line needs user_input, reference and retrieved_contexts (a list of strings)."

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

    def __str__(self) -> str:
        """Say what is empty."""
        return "retrieved_contexts is empty or all blank"


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
    hint = "Retrieve fewer or shorter contexts, or serve the judge with a longer context."

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


class _Told(AirjudgeError):
    """An error whose message and next step are written where it is raised."""

    def __init__(self, message: str, hint: str = "") -> None:
        """Keep the message and the next step."""
        super().__init__(message, hint)
        self.hint = hint or type(self).hint

    def __str__(self) -> str:
        """Give the message alone; `hint` holds the next step."""
        return str(self.args[0])


class InputError(_Told):
    """A path or an option cannot be used at all."""

    kind = "input"


class CalibrationDiffers(InputError):
    """A calibration was made for another judge, whose probabilities mean something else."""

    kind = "calibration_differs"
    hint = "Score labelled samples by this judge, then: airjudge calibrate RUN --labels FILE"


class RunDiffers(InputError):
    """A folder holds a run that was made under another signature, other settings or other data."""

    kind = "run_differs"


class RunLocked(InputError):
    """Another process writes into the folder."""

    kind = "run_locked"
    hint = "Wait for it, end it, or choose another folder with --out."


class StatementsDiffer(InputError):
    """Runs that are to be compared do not hold the same statements."""

    kind = "statements_differ"
    hint = "Score the same data with the same --statements, or compare the samples' scores alone: --scores-only"


class RunInterrupted(_Told):
    """Somebody asked the run to stop; what was done is kept."""

    kind = "interrupted"
    hint = "The same command goes on where it stopped."


class StorageFailed(_Told):
    """What must be kept cannot be written or read back: the disk is full, or the folder went away."""

    kind = "storage"
    hint = "What was committed is kept: look at the disk and the folder, then give the same command again."


class JudgeError(_Told):
    """No sample can be judged; the run stops."""

    kind = "judge"


class JudgeUnreachable(JudgeError):
    """Nobody answers at the judge's address."""

    kind = "judge_unreachable"
    hint = "Check the address, or start a judge here: airjudge serve"


class JudgeRemote(JudgeError):
    """The judge's address is neither loopback nor private."""

    kind = "judge_remote"
    hint = "Data would leave this network. Pass --allow-remote (allow_remote=True) if that is meant."


class JudgeUnauthorized(JudgeError):
    """The server wants another key."""

    kind = "judge_unauthorized"
    hint = "Put the key into an environment variable and name it: --api-key-env VAR"


class JudgeNotServed(JudgeError):
    """The server serves another model."""

    kind = "judge_not_served"


class JudgeQuota(JudgeError):
    """The account at a provider has nothing left to spend."""

    kind = "judge_quota"
    hint = "Add credit or raise the account's limit; then the same command goes on."


class BudgetSpent(JudgeError):
    """The run has cost what it may cost; what was paid for is kept."""

    kind = "budget_spent"
    hint = "To go on, give the same command with a higher --max-cost."


class JudgeForeign(JudgeError):
    """What answers is not an OpenAI-compatible server."""

    kind = "judge_foreign"
    hint = "The base URL of a vLLM server looks like http://127.0.0.1:8000/v1; a provider documents its own."


class JudgeChanged(JudgeError):
    """A server came back in the middle of a run, and is another judge."""

    kind = "judge_changed"
    hint = "Start the server as it was and give the command again: a run has one judge from end to end."


class JudgesDiffer(JudgeError):
    """The servers of one pool do not rule alike."""

    kind = "judges_differ"
    hint = "Serve the same model with the same vLLM and the same settings everywhere, or name fewer servers."


class JudgeTooOld(JudgeError):
    """The server is older than what its enforcement can be trusted with."""

    kind = "judge_too_old"


class EnforcementMissing(JudgeError):
    """The server ignores the reply schema."""

    kind = "enforcement_missing"
    hint = (
        "Start it with constrained decoding: python -m vllm.entrypoints.openai.api_server "
        """--structured-outputs-config '{"backend":"outlines"}' ..., or use: airjudge serve"""
    )


class SchemaNotCompiled(JudgeError):
    """The server cannot compile the reply schema; asking again would only leak its threads."""

    kind = "schema_not_compiled"
    hint = "Start the server with a larger VLLM_REGEX_COMPILATION_TIMEOUT_S (seconds, default 5)."


class ServerFailed(_Told):
    """A vLLM process of ours did not come up, or died; the message holds its last log lines."""

    kind = "server_failed"


class ProfileError(_Told):
    """A judge profile is unknown or malformed."""

    kind = "profile"
    hint = "See: airjudge models list"


class WeightsError(_Told):
    """Weights cannot be brought, verified or prepared."""

    kind = "weights"


class WeightsMissing(WeightsError):
    """The weights are not in the cache."""

    kind = "weights_missing"


class WeightsMismatch(WeightsError):
    """A file is not the one that the profile names."""

    kind = "weights_mismatch"


class WeightsUnpinned(WeightsError):
    """A file has no recorded hash, where one is required."""

    kind = "weights_unpinned"


class WeightsUnavailable(WeightsError):
    """A source cannot be reached, or the disk is full."""

    kind = "weights_unavailable"
