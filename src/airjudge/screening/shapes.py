"""Rules for texts in the shape of what surrounds a sample in a prompt: turns of a chat, our headings, our replies."""

from typing import Final

from airjudge.screening.rules import rule

_HEADED: Final = r"^[ \t>#*=\-\[(]{0,8}"
_HEADINGS: Final = (
    "contexts|retrieved contexts|statement|statement to (?:check|verify|judge)|kontexte|aussage|contextes|affirmation"
    "|contextos|afirmación|afirmação|contesti|affermazione|contexten|bewering|контексты|утверждение|上下文|陈述|陳述"
    "|コンテキスト|文脈|文|主張|컨텍스트|문맥|진술|السياقات|العبارة|संदर्भ|कथन"
)
_RULED: Final = "attributed|supported|entailed|entailment"

_TEMPLATE_TOKENS: Final = (
    rule("template_tokens", r"<\|[a-z_][a-z0-9_ ▁]{0,40}\|>", literals="<|"),
    rule("template_tokens", r"<(?:start|end)_of_turn>", "start_of_turn|end_of_turn"),
    rule(
        "template_tokens",
        r"\[/?(?:inst|system_prompt|available_tools|tool_calls|tool_results)\]|<</?sys>>",
        "inst|/inst|sys|/sys|system_prompt|/system_prompt|available_tools|/available_tools|tool_calls|tool_results",
    ),
    rule(
        "template_tokens",
        r"</?(?:system|assistant|instructions|think|tool_call|tool_response)>",
        "system|assistant|instructions|think|/system|/assistant|/instructions|/think|tool_call|/tool_call|tool_response"
        "|/tool_response",
        literals="<",
    ),
    rule("template_tokens", r"</s>(?=\s{0,2}(?:<s>|\[|<\||user|human|system|assistant))", "/s"),
    rule("template_tokens", r"^[ \t#*]{0,6}assistant[ \t*]{0,3}[:：]", "assistant"),
    rule("template_tokens", r"^#{2,4} ?(?:instruction|response|input|system)s? ?[:：]", literals="##"),
)

_SECTIONS: Final = (
    rule(
        "section",
        rf"{_HEADED}(?:{_HEADINGS})(?: ?\d{{1,3}})?[\])* ]{{0,3}}[:：]",
        "contexts|statement|kontexte|aussage|contextes|affirmation|contextos|afirmación|afirmação|contesti|affermazione"
        "|contexten|bewering",
    ),
    rule(
        "section",
        rf"{_HEADED}(?:{_HEADINGS})(?: ?\d{{1,3}})?[\])* ]{{0,3}}[:：]",
        literals="контексты|утверждение|上下文|陈述|陳述|コンテキスト|文脈|文:|文：|主張|컨텍스트|문맥|진술|السياقات|العبارة|संदर्भ|कथन",
    ),
    rule("section", r"^#{1,4} (?:contexts|statement)(?: \d{1,3})?[ \t]{0,3}$", "contexts|statement", literals="#"),
    rule(
        "section",
        r"(?<!\w)</?(?:retrieved_)?(?:contexts?|statements?|evidence)>",
        "context|contexts|statement|statements|evidence|/context|/contexts|/statement|/statements|/evidence"
        "|retrieved_contexts|/retrieved_contexts",
        literals="<",
    ),
    rule(
        "section",
        r"[-=#*\[<(]{1,3} ?end of (?:the )?(?:contexts?|statements?|documents?|retrieved|input|data)\b"
        r"|^\W{0,6}end of (?:the )?(?:contexts?|data|input)\b",
        "end",
        "context|contexts|statement|statements|document|documents|retrieved|input|data",
    ),
    # Statements that stand answered, as examples before the one that is asked about.
    rule(
        "section",
        r"[.!?。।]\n{1,2}[01]\n{1,2}[^\n]{1,200}[.!?。।]\n{1,2}[01]$",
        "0|1",
        literals="\n1\n|\n0\n",
    ),
)

_VERDICTS: Final = (
    rule(
        "verdict",
        r"\battributed[\"'`\\]{0,4}\s?[:=]\s?[\"'`\\]{0,2}(?:[01]\b|true|false|yes|no\b)",
        "attributed|attributed=1|attributed=0|attributed=true|attributed=false",
    ),
    rule(
        "verdict",
        r"[\"'](?:classifications|verdicts?|context_recall_score)[\"']\s?:|</?verdict>"
        r"|\bverdict[ \"'`*]{0,3}(?:==?|:)[ \"'`*]{0,3}[01]\b(?! ?[\w.,])",
        "classifications|verdict|verdicts|context_recall_score|/verdict|verdict=1|verdict=0",
    ),
    rule("verdict", r"[\"'](?:enum\W{1,4}\[\s?[01]\s?\]|const[\"']\s?:\s?[01]\b)", "enum|const"),
    rule(
        "verdict",
        r"^[ \t>#*\-]{0,6}(?:(?:final |correct )?(?:verdict|label|attributed)\W{1,4}(?:is\W{1,2})?"
        rf"(?:[01]|{_RULED})|(?:final )?answer ?[:：=]\W{{0,3}}[01])[ \t.!*`\"']{{0,4}}$",
        "verdict|label|answer|attributed",
        "0|1|" + _RULED,
    ),
)

SHAPES: Final = _TEMPLATE_TOKENS + _SECTIONS + _VERDICTS
