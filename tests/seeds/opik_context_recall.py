from airjudge.compat.opik import ContextRecall

metric = ContextRecall()
score = metric.score(
    input="What's the capital of France?",
    output="The capital of France is Paris.",
    expected_output="Paris",
    context=["France is a country in Europe."],
)
print(score.value)
print(score.reason)
