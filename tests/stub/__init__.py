"""A stub judge for tests: vLLM's API on loopback, schemas enforced for real, faults on demand."""

from tests.stub.answers import by_text, overlap_judge
from tests.stub.engine import StubConfig
from tests.stub.faults import Fault, RecordedRequest
from tests.stub.hosted import HostedConfig, HostedStub
from tests.stub.server import Stub

__all__ = ["Fault", "HostedConfig", "HostedStub", "RecordedRequest", "Stub", "StubConfig", "by_text", "overlap_judge"]
