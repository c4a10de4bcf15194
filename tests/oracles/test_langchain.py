"""Context recall as an evaluator of LangSmith, which runs whole evaluations here, without a network."""

import asyncio
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.documents import Document
from langsmith import Client, aevaluate, evaluate
from langsmith.schemas import Example

from airjudge import Judge
from airjudge.integrations.langchain import Fields, acontext_recall_evaluator, context_recall_evaluator
from tests.stub import Stub

QUESTION = "Where is the boat?"
CONTEXT = "The red boat lies in Bergen harbour."
REFERENCE = f"{CONTEXT} Captain Thomas sings loudly."
NAMED = Fields(user_input="question", retrieved_contexts="documents", reference="answer")


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


@pytest.fixture
def judge(stub: Stub) -> Judge:
    return Judge.connect(stub.base_url, api_key=stub.api_key)


@pytest.fixture
def client() -> Client:
    """A client whose address refuses whoever connects."""
    return Client(api_url="http://127.0.0.1:9", api_key="none", auto_batch_tracing=False)


def example(answer: str) -> Example:
    return Example(
        id=uuid.uuid4(),
        dataset_id=uuid.UUID(int=0),
        inputs={"question": QUESTION},
        outputs={"answer": answer},
        created_at=datetime.now(UTC),
    )


def retrieved(inputs: dict[str, Any]) -> dict[str, Any]:
    """The system under test."""
    assert inputs == {"question": QUESTION}
    return {"documents": [Document(CONTEXT)]}


async def aretrieved(inputs: dict[str, Any]) -> dict[str, Any]:
    return retrieved(inputs)


def told(row: Any) -> tuple[str, object, str]:
    (one,) = row["evaluation_results"]["results"]
    return one.key, one.score, one.comment


def test_langsmith_evaluates_with_it_and_uploads_nothing(judge: Judge, client: Client) -> None:
    data = [example(REFERENCE), example(CONTEXT)]
    evaluator = context_recall_evaluator(judge, fields=NAMED)
    rows = list(evaluate(retrieved, data=data, evaluators=[evaluator], client=client, upload_results=False))
    by_answer = {row["example"].outputs["answer"]: told(row) for row in rows}
    key, score, comment = by_answer[REFERENCE]
    assert (key, score) == ("context_recall", 0.5)
    assert comment.startswith("1 of 2 statements missed\n  missed (probability 0.")
    assert by_answer[CONTEXT] == ("context_recall", 1.0, "0 of 1 statements missed")


@pytest.mark.parametrize("make", [context_recall_evaluator, acontext_recall_evaluator])
def test_langsmith_awaits_either(judge: Judge, client: Client, make: Any) -> None:
    async def rows() -> list[Any]:
        evaluator = make(judge, fields=NAMED, key="recall")
        found = await aevaluate(
            aretrieved, data=[example(REFERENCE)], evaluators=[evaluator], client=client, upload_results=False
        )
        return [row async for row in found]

    assert [told(row)[:2] for row in asyncio.run(rows())] == [("recall", 0.5)]


def test_langsmith_notes_an_example_that_lacks_a_field_as_an_error_of_that_one(judge: Judge, client: Client) -> None:
    evaluator = context_recall_evaluator(judge)
    (row,) = evaluate(retrieved, data=[example(CONTEXT)], evaluators=[evaluator], client=client, upload_results=False)
    for one in row["evaluation_results"]["results"]:
        assert one.score is None
        assert "outputs has no 'retrieved_contexts': it has 'documents'" in one.comment


def test_as_openevals_calls_it(judge: Judge) -> None:
    evaluator = context_recall_evaluator(judge)
    found = evaluator(inputs=QUESTION, outputs=[CONTEXT], reference_outputs=REFERENCE)
    assert (found["key"], found["score"]) == ("context_recall", 0.5)
    assert "enforced=outlines" in str(found["metadata"])


@pytest.mark.parametrize(
    ("contexts", "score", "comment"),
    [
        ([{"page_content": CONTEXT, "metadata": {}}], 1.0, "0 of 1 statements missed"),
        ([], 0.0, f"1 of 1 statements missed\n  missed: {CONTEXT}"),
        (["boat " * 100_000], None, "prompt_too_long: "),
    ],
)
def test_what_is_retrieved_decides(judge: Judge, contexts: list[object], score: object, comment: str) -> None:
    found = context_recall_evaluator(judge)({"user_input": QUESTION}, {"retrieved_contexts": contexts}, CONTEXT)
    assert found["score"] == score
    assert str(found["comment"]).startswith(comment)


def test_one_string_is_no_list_of_contexts(judge: Judge) -> None:
    with pytest.raises(ValueError, match="must be a list of strings"):
        context_recall_evaluator(judge)(QUESTION, CONTEXT, REFERENCE)
