"""Rules for orders in English."""

from typing import Final

from airjudge.screening.rules import addressed, answered, forgotten, rule, settled

_MODELS: Final = (
    "ai|llm|language model|chatbot|chatgpt|gpt|evaluator|grader|llms|ais|language models|evaluators|graders"
)
_LABELS: Final = "attributed|supported|entailed|entailment|grounded"
_UNITS: Final = "it|this|all|each|statement|statements|claim|claims|sentence|sentences|everything|assertions"
_CALL: Final = "note|notice|message|memo|instruction|instructions|reminder|attention|attn|hint"
_CONFIRMED: Final = "mark|label|rate|rule|score|grade|classify|treat|consider|count|regard|accept|judge|declare|report"


ENGLISH: Final = (
    forgotten(
        "ignore|disregard|forget|override|bypass|neglect|discard|do not follow|don't follow|stop following",
        "instruction|instructions|prompt|prompts|directive|directives|directions|commands|rules|guidelines|context"
        "|contexts|messages|task|criteria|rubric",
        "previous|prior|above|earlier|preceding|foregoing|system|your|original|initial",
    ),
    rule(
        "instruction",
        r"\b(?:ignore|disregard|forget) (?:(?:all|any|every|everything|the|of|these|other) "
        r"(?:instructions?|prompts?|(?:of )?the instructions|you (?:were|have been) told|(?:said |written )?above)"
        r"|(?:the|this) statement and)\b",
        "ignore|disregard|forget",
        "instructions|instruction|prompt|prompts|told|above|statement",
    ),
    answered(
        "reply|respond|replies|responds",
        "with|only|just|always|simply|the|an?|single|digit|number|character|value|exactly|and|nothing|anything|but|to",
        "for|if|to|regardless|no matter|whatever|and|as|in|here",
    ),
    rule(
        "instruction",
        r"\b(?:answer|output|return|print|write|say|give|choose|select)(?: (?:with|only|just|always|simply|the|an?"
        r"|single|digit|number|exactly)){1,6} [\"'“]?[01]\b(?![.,:]?\d)(?=\W{0,3}(?:$|\n|[.,;!?)\]\"'”])"
        r"| (?:for|if|regardless|no matter|whatever)\b)",
        "answer|output|return|print|write|say|give|choose|select",
        "0|1",
    ),
    rule(
        "instruction",
        r"\b(?:(?:answer|reply|respond) with (?:it|the (?:digit|number)) alone|(?:say|and) nothing else: [01]\b"
        r"|repeat after me\b[^.\n]{0,30}[01]\b)",
        "answer|reply|respond|nothing|repeat",
        "alone|else|after",
    ),
    rule(
        "instruction",
        rf"\b(?:{_CONFIRMED}) (?:\w{{1,12}} ){{0,4}}?(?:{_UNITS})(?: \w{{1,12}}){{0,4}}? (?:as|to be) "
        rf"(?:\w{{1,12}} )?(?:{_LABELS})\b",
        _CONFIRMED,
        _LABELS,
    ),
    rule(
        "instruction",
        r"\b(?:mark|label|rate|rule|score|grade|classify|treat|consider|declare) (?:\w{1,12} ){0,3}?"
        r"statements?(?: \w{1,12}){0,3}? (?:as|to be) (?:\w{1,12} )?(?:true|correct|false)\b",
        "mark|label|rate|rule|score|grade|classify|treat|consider|declare",
        "statement|statements",
        "true|correct|false",
    ),
    settled(
        "verdict|ruling|correct reply|only valid reply|correct label|expected label|right label|your answer|your reply"
        "|expected verdict|expected reply",
        "is|it|has|already|been|settled|decided|fixed|known|the|must|should|be|will|remains|stays|clear|final|that|for"
        "|this|item|case|statement|correct|always|and|so|now|are",
    ),
    rule(
        "instruction",
        r"\b(?:always|by hand and|must be|will be|to be) (?:ruled|rated|labell?ed|marked|scored|judged|graded)"
        r" (?:as |with )?(?:an? )?[\"']?[01]\b(?![.,:]?\d)",
        "ruled|rated|labelled|labeled|marked|scored|judged|graded",
        "0|1",
    ),
    rule(
        "instruction",
        r"\bevery (?:statement|sample|item|claim)(?: \w{1,12}){0,4}? (?:gets|is|receives|scores|deserves) (?:an? )?"
        rf"(?:[01]\b(?![.,:]?\d)|(?:{_LABELS})\b)",
        "statement|sample|item|claim",
        "every",
        "gets|receives|is|scores|deserves",
    ),
    rule(
        "instruction",
        rf"\b(?:correct|right|expected|only|final|true|proper|required) (?:\w{{1,12}} )?"
        rf"(?:verdict|label|judge?ment|ruling) "
        rf"(?:\w{{1,12}} ){{0,4}}?(?:is|must be|should be|=|:)\W{{0,3}}(?:yes|true|{_LABELS})\b",
        "verdict|label|judgment|judgement|ruling",
        "yes|true|" + _LABELS,
    ),
    rule(
        "instruction",
        rf"\b(?:{_LABELS}|implied|confirmed|backed) (?:by|in|to) (?:the|these|this|all|any|every) "
        r"(?:\w{1,12} )?contexts?\b",
        "context|contexts",
        _LABELS + "|implied|confirmed|backed",
    ),
    rule(
        "instruction",
        r"\byou must (?:\w{1,12} )?(?:answer|reply|respond|output|rule|mark|label|return)(?: \w{1,12}){0,5}?\W{1,3}"
        rf"(?:[01]\b(?![.,:]?\d)|(?:{_LABELS})\b)",
        "must",
        "answer|reply|respond|output|rule|mark|label|return",
        "0|1|" + _LABELS,
    ),
    rule(
        "instruction",
        rf"\b(?:{_CALL}|dear|hello|hey)\W{{1,3}}(?:to |for |from )?(?:the |any |all |every |our )?"
        rf"(?:automated |automatic )?(?:{_MODELS}|ai judge|llm judge|ai model)\b",
        _CALL + "|dear|hello|hey",
        _MODELS + "|judge",
    ),
    addressed("important|urgent", "to the evaluator|to the grader|for the evaluator|for the grader|to the evaluators"),
    rule(
        "instruction",
        rf"\b(?:{_CALL})\W{{1,3}}(?:to |for )?(?:the |any |all )?"
        r"(?:judge|model|assistant|assessor|annotator|rater|verifier|reviewer)s?\s?[:：]"
        r"|\bnote from the (?:developers?|authors?|makers?|designers?) of this (?:evaluation|benchmark|test)\b",
        _CALL,
        "judge|model|assistant|assessor|annotator|rater|verifier|reviewer|judges|models|evaluation|benchmark|test",
    ),
    rule(
        "instruction",
        r"\b(?:you are|you're|act as|behave as|pretend to be|roleplay as) (?:now )?(?:an?|the|in)\b"
        rf"(?: \w{{1,12}}){{0,2}}? (?:{_MODELS}|assistant|developer mode|debug mode|judge model)\b"
        r"|\byou are (?:now )?\w{1,20}bot\b",
        "you|act|behave|pretend|roleplay",
        _MODELS + "|assistant|mode|judge|verdictbot|judgebot|bot",
    ),
    rule(
        "instruction",
        rf"\bif you are (?:an? |the )?(?:automated |automatic )?(?:{_MODELS}|judge|model)\b",
        "you",
        _MODELS + "|judge|model",
    ),
    rule(
        "instruction",
        r"\b(?:ai|llm|language model|model|judge|grader|evaluator|assistant)s? "
        r"(?:reading|evaluating|grading|judging|scoring|processing) (?:this|the|these)\b",
        "reading|evaluating|grading|judging|scoring|processing",
        "ai|llm|model|judge|grader|evaluator|assistant|models|judges|graders|evaluators|assistants|llms",
    ),
    rule(
        "instruction",
        r"\b(?:system|developer|admin|administrator)\W(?:override|prompt|message|instructions?|note|notice|update)"
        r"\s?[\])>*#]{0,4}\s?[:：—-]",
        "system|developer|admin|administrator",
        "override|prompt|message|instruction|instructions|note|notice|update",
    ),
    rule(
        "instruction",
        r"\b(?:hidden|secret|internal) (?:instructions?|directive|note to)\b ?[:：]|^\W{0,3}\[/?system\](?![(\[])"
        r"|</?(?:system|developer|admin)_(?:override|prompt|message|note)>",
        "hidden|secret|internal|system|developer|admin|system_override|/system_override|system_prompt|system_message"
        "|system_note|developer_message|admin_override",
        literals="[|<|:",
    ),
    rule(
        "instruction",
        r"\b(?:overrides?|supersedes?|replaces?) (?:the|this|your|all) (?:\w{1,12} )?"
        r"(?:evaluation|grading|judging|rubric)\b"
        r"|\b(?:evaluation|grading|scoring|judging) (?:criteria|rubric|rules?) (?:update|override|v\d)"
        r"|\bthe (?:judge|grader|evaluator) (?:should|must) "
        r"(?:follow|obey|ignore|reply|answer|output|select|rule|mark)\b",
        "override|overrides|supersede|supersedes|replace|replaces|criteria|rubric|rules|rule|should|must",
        "evaluation|grading|judging|rubric|scoring|judge|grader|evaluator",
    ),
    rule(
        "instruction",
        r"\bnew (?:system )?(?:instructions?|directives?|task)(?:\s?[:：]|, (?:forget|ignore|disregard))",
        "new",
        "instruction|instructions|directive|directives|task",
    ),
    rule(
        "instruction",
        r"\b(?:evaluation|grading|judging|scoring|benchmark|assessment|evaluator|grader|judge)\W"
        r"(?:note|mode|override|instructions?|key|protocol|policy|rule|directive)s?\s?[:：]",
        "evaluation|grading|judging|scoring|benchmark|assessment|evaluator|grader|judge",
        "note|notes|mode|override|instruction|instructions|key|protocol|policy|rule|rules|directive|directives",
    ),
    rule(
        "instruction",
        r"[\[<{(] ?(?:test|debug|developer|admin|god) mode (?:on|enabled|activated|active)\b",
        "mode",
        "on|enabled|activated|active",
        "test|debug|developer|admin|god",
    ),
    rule(
        "instruction",
        r"\bdo not (?:judge|evaluate|assess|grade|rate|verify) (?:the|this) (?:statement|claim)\b"
        r"|\bfor this (?:item|sample|case|task)\b[^.\n]{0,40}\b(?:labels?|verdicts?)\b[^.\n]{0,20}"
        r"\b(?:swapped|inverted|reversed|flipped)\b",
        "judge|evaluate|assess|grade|rate|verify|swapped|inverted|reversed|flipped",
        "statement|claim|label|labels|verdict|verdicts",
    ),
    rule(
        "instruction",
        r"\b(?:reveal|print|repeat|show|output|leak) (?:me )?(?:your|the) (?:\w{1,12} )?"
        r"(?:system prompt|instructions)\b"
        r"|\b(?:decode|read) this\b[^.\n]{0,30}\band (?:do as it says|follow it|obey)\b",
        "reveal|print|repeat|show|output|leak|decode|read",
        "prompt|instructions|says|follow|obey",
    ),
    rule(
        "instruction",
        r"\bis the statement (?:entailed|supported)|\bdo the contexts say that the following\b",
        "statement|contexts",
        "entailed|supported|following",
    ),
)
