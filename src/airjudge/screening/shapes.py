"""Rules for texts in the shape of what surrounds a sample in a prompt: turns of a chat, our headings, our replies."""

import re
from typing import Final

from airjudge.screening.orders import Rule

_HEADED: Final = r"^[ \t>#*=\-\[(]{0,8}"
_HEADINGS: Final = (
    "contexts|retrieved contexts|statement|statement to (?:check|verify|judge)|kontexte|aussage|contextes|affirmation"
    "|contextos|afirmación|afirmação|contesti|affermazione|contexten|bewering|контексты|утверждение|上下文|陈述|陳述|コンテキスト|文脈|文|主張"
    "|컨텍스트|문맥|진술|السياقات|العبارة|संदर्भ|कथन"
)
_RULED: Final = "attributed|supported|entailed|entailment"

TEMPLATE_TOKENS: Final = (
    Rule("template_tokens", ("<|",), re.compile(r"<\|[a-z_][a-z0-9_ ▁]{0,40}\|>")),
    Rule("template_tokens", ("_of_turn>", "<turn"), re.compile(r"<(?:start|end)_of_turn>")),
    Rule(
        "template_tokens",
        ("inst]", "sys>>", "[system_prompt]", "[available_tools]", "[tool_"),
        re.compile(r"\[/?inst\]|<</?sys>>|\[/?system_prompt\]|\[/?available_tools\]|\[/?tool_(?:calls|results)\]"),
    ),
    Rule(
        "template_tokens",
        ("system>", "assistant>", "instructions>", "think>", "tool_"),
        re.compile(r"</?(?:system|assistant|instructions|think|tool_call|tool_response)>"),
    ),
    Rule("template_tokens", ("</s>",), re.compile(r"</s>(?=\s{0,2}(?:<s>|\[|<\||$|user|human|system|assistant))")),
    Rule("template_tokens", ("assistant",), re.compile(r"^[ \t#*]{0,6}assistant[ \t*]{0,3}[:：]", re.MULTILINE)),
    Rule(
        "template_tokens",
        ("###",),
        re.compile(r"^#{2,4} ?(?:instruction|response|input|system)s? ?[:：]", re.MULTILINE),
    ),
)

SECTIONS: Final = (
    Rule(
        "section",
        (":", "："),
        re.compile(rf"{_HEADED}(?:{_HEADINGS})(?: ?\d{{1,3}})?[\])* ]{{0,3}}[:：]", re.MULTILINE),
    ),
    Rule("section", ("#",), re.compile(r"^#{1,4} (?:contexts|statement)(?: \d{1,3})?[ \t]{0,3}$", re.MULTILINE)),
    Rule(
        "section",
        ("context>", "contexts>", "statement>", "statements>", "evidence>"),
        re.compile(r"</?(?:retrieved_)?(?:contexts?|statements?|evidence)>"),
    ),
    Rule(
        "section",
        ("end of ",),
        re.compile(r"[-=#*\[<(]{1,3} ?end of (?:the )?(?:contexts?|statements?|documents?|retrieved|input|data)\b"),
    ),
)

VERDICTS: Final = (
    Rule(
        "verdict",
        ("attributed",),
        re.compile(r"\battributed[\"'`]{0,2}\s?[:=]\s?[\"'`]?(?:[01]\b|true|false|yes|no\b)"),
    ),
    Rule(
        "verdict",
        ("classifications", "verdict", "context_recall_score"),
        re.compile(r"[\"'](?:classifications|verdicts?|context_recall_score)[\"']\s?:"),
    ),
    Rule(
        "verdict",
        ("verdict", "label", "answer", "attributed"),
        re.compile(
            r"^[ \t>#*\-]{0,6}(?:(?:final |correct )?(?:verdict|label|attributed)\W{1,4}(?:is\W{1,2})?"
            rf"(?:[01]|{_RULED})|(?:final )?answer ?[:：=]\W{{0,3}}[01])[ \t.!*`\"']{{0,4}}$",
            re.MULTILINE,
        ),
    ),
)

SHAPES: Final = TEMPLATE_TOKENS + SECTIONS + VERDICTS
