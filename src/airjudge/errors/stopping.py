"""Errors that stop a command: each says what is wrong, and its hint what to do."""

from airjudge.errors.root import Told


class InputError(Told):
    """A path or an option cannot be used at all."""

    kind = "input"


class CalibrationDiffers(InputError):
    """A calibration was made for another judge, whose probabilities mean something else."""

    kind = "calibration_differs"
    hint = "Score labelled samples by this judge, then: airjudge calibrate RUN --labels FILE"


class ExtraMissing(InputError):
    """A package is not installed that an extra of airjudge brings; the hint names the extra."""

    kind = "extra_missing"


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


class BundleFailed(Told):
    """A bundle cannot be made: a package cannot be brought, or cannot be written."""

    kind = "bundle"


class SchemaRefused(InputError):
    """A reply schema of the caller's says something that outlines would not enforce while decoding."""

    kind = "schema_refused"
    hint = "Say it in another way: by enums, Literal types, both bounds of a range, or a pattern."


class RunInterrupted(Told):
    """Somebody asked the run to stop; what was done is kept."""

    kind = "interrupted"
    hint = "The same command goes on where it stopped."


class StorageFailed(Told):
    """What must be kept cannot be written or read back: the disk is full, or the folder went away."""

    kind = "storage"
    hint = "What was committed is kept: look at the disk and the folder, then give the same command again."


class JudgeError(Told):
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


class ServerFailed(Told):
    """A vLLM process of ours did not come up, or died; the message holds its last log lines."""

    kind = "server_failed"


class ProfileError(Told):
    """A judge profile is unknown or malformed."""

    kind = "profile"
    hint = "See: airjudge models list"


class WeightsError(Told):
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
