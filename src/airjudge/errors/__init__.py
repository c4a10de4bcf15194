"""The error tree. A caller's misuse is ValueError; what the world does wrong is one of these.

AirjudgeError                    every error of ours; `kind` for machines, `hint` is the next step
├── EvaluationError              one sample cannot be scored; becomes a record, the others go on
│   ├── DatasetError             a line of the data set does not describe a sample
│   ├── DuplicateId              an id that an earlier sample has
│   ├── NotRecorded              a judge whose verdicts came as a file ruled not on all statements
│   ├── AnswerMissing            a batch of answers has none to a question
│   ├── AnswersDiffer            a batch has two answers to a question, which contradict each other
│   ├── EmptyContexts            no context to judge against, where that was asked to be an error
│   ├── StatementsMissing        the run that statements are taken from has none of this sample
│   ├── PromptTooLong            the prompt does not fit the model's context
│   ├── ReplyRefused             the reply does not match the schema's automaton
│   ├── ReplyInvalid             the reply has the schema's form, and the caller's model refuses it
│   ├── ReplyTruncated           the reply was cut before its verdict
│   ├── ReplyRunaway             the reply ran to its limit with whitespace or repetition
│   ├── RequestTimeout           no reply within the time limit
│   └── RequestFailed            the server kept failing, or closed the connection
├── InputError                   a path or an option cannot be used at all
│   ├── CalibrationDiffers       the calibration was made for another judge
│   ├── ExtraMissing             a package is not installed that an extra brings
│   ├── RunDiffers               the folder holds a run of another judge, other settings or other data
│   ├── SchemaRefused            a reply schema says something that outlines would not enforce
│   ├── RunLocked                another process writes into the folder
│   └── StatementsDiffer         runs do not hold the same statements
├── BundleFailed                 a bundle cannot be made
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

from airjudge.errors.root import AirjudgeError
from airjudge.errors.samples import (
    AnswerMissing,
    AnswersDiffer,
    DatasetError,
    DuplicateId,
    EmptyContexts,
    EvaluationError,
    NotRecorded,
    PromptTooLong,
    ReplyInvalid,
    ReplyRefused,
    ReplyRunaway,
    ReplyTruncated,
    RequestFailed,
    RequestTimeout,
    StatementsMissing,
)
from airjudge.errors.stopping import (
    BudgetSpent,
    BundleFailed,
    CalibrationDiffers,
    EnforcementMissing,
    ExtraMissing,
    InputError,
    JudgeChanged,
    JudgeError,
    JudgeForeign,
    JudgeNotServed,
    JudgeQuota,
    JudgeRemote,
    JudgesDiffer,
    JudgeTooOld,
    JudgeUnauthorized,
    JudgeUnreachable,
    ProfileError,
    RunDiffers,
    RunInterrupted,
    RunLocked,
    SchemaNotCompiled,
    SchemaRefused,
    ServerFailed,
    StatementsDiffer,
    StorageFailed,
    WeightsError,
    WeightsMismatch,
    WeightsMissing,
    WeightsUnavailable,
    WeightsUnpinned,
)

__all__ = [
    "AirjudgeError",
    "AnswerMissing",
    "AnswersDiffer",
    "BudgetSpent",
    "BundleFailed",
    "CalibrationDiffers",
    "DatasetError",
    "DuplicateId",
    "EmptyContexts",
    "EnforcementMissing",
    "EvaluationError",
    "ExtraMissing",
    "InputError",
    "JudgeChanged",
    "JudgeError",
    "JudgeForeign",
    "JudgeNotServed",
    "JudgeQuota",
    "JudgeRemote",
    "JudgeTooOld",
    "JudgeUnauthorized",
    "JudgeUnreachable",
    "JudgesDiffer",
    "NotRecorded",
    "ProfileError",
    "PromptTooLong",
    "ReplyInvalid",
    "ReplyRefused",
    "ReplyRunaway",
    "ReplyTruncated",
    "RequestFailed",
    "RequestTimeout",
    "RunDiffers",
    "RunInterrupted",
    "RunLocked",
    "SchemaNotCompiled",
    "SchemaRefused",
    "ServerFailed",
    "StatementsDiffer",
    "StatementsMissing",
    "StorageFailed",
    "WeightsError",
    "WeightsMismatch",
    "WeightsMissing",
    "WeightsUnavailable",
    "WeightsUnpinned",
]
