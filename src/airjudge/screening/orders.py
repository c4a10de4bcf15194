"""Rules for texts that give a judge orders, by language.

Patterns are for folded text (lower case, NFKC, no invisible characters). Repeats are bounded and never nested on
what can match the same characters, so that a search takes time in proportion to the text. A rule is tried where a
text holds one of its `hints`, which are cheap to look for.
"""

import re
from dataclasses import dataclass
from typing import Final

from airjudge.schema import SuspicionKind


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern that marks a text, and the literals of which such a text holds at least one."""

    kind: SuspicionKind
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


GAP: Final = r"(?:\W{1,3}\w{1,20}){0,4}?\W{1,3}"
"""Up to four words between two others."""
_END: Final = r"\W{0,3}(?:$|\n|[.,;:!?)\]\"'»”])"


def forgotten(verbs: str, nouns: str, priors: str, *, hints: tuple[str, ...]) -> Rule:
    """To ignore the instructions above, or the above instructions."""
    either = rf"(?:(?:{priors}){GAP}(?:{nouns})|(?:{nouns}){GAP}(?:{priors}))"
    return Rule("instruction", hints, re.compile(rf"\b(?:{verbs})(?:\W{{1,3}}\w{{1,20}}){{0,3}}?\W{{1,3}}{either}\b"))


def answered(verbs: str, links: str, tails: str = "$", *, hints: tuple[str, ...]) -> Rule:
    """To answer with a 1 or a 0, at a clause's end or before a word that says when."""
    return Rule(
        "instruction",
        hints,
        re.compile(
            rf"\b(?:{verbs})(?:\s{{1,2}}(?:{links})){{1,6}}\W{{1,4}}[01]\b(?![.,:]?\d)"
            rf"(?={_END}|\s(?:{tails})\b)",
            re.MULTILINE,
        ),
    )


def said(pattern: str, *, hints: tuple[str, ...]) -> Rule:
    """Any other wording."""
    return Rule("instruction", hints, re.compile(pattern, re.MULTILINE))


_MODEL: Final = (
    r"(?:ai|llm|(?:large )?language model|chatbot|chatgpt|gpt|evaluator|grader|ai judge|llm judge|ai model)s?"
)
_LABEL: Final = r"(?:attributed|supported|entailed|entailment|grounded)"
_UNIT: Final = r"(?:statements?|claims?|sentences?|everything|assertions?)"

_ENGLISH: Final = (
    forgotten(
        r"ignore|disregard|forget|override|bypass|neglect|discard|do not follow|don't follow|stop following",
        r"instructions?|prompts?|directives?|directions|commands|rules|guidelines|contexts?|messages?|task|criteria|rubric",
        r"previous|prior|above|earlier|preceding|foregoing|system|your|original|initial|given so far",
        hints=(
            "instruction",
            "prompt",
            "directi",
            "command",
            "rules",
            "guideline",
            "context",
            "message",
            "task",
            "criteri",
            "rubric",
        ),
    ),
    said(
        r"\b(?:ignore|disregard|forget) (?:all|any|every|everything|the|of|these|other) "
        r"(?:instructions?|prompts?|(?:of )?the instructions|you (?:were|have been) told|(?:said |written )?above)\b",
        hints=("ignore ", "disregard ", "forget "),
    ),
    answered(
        r"answer|reply|respond|output|return|print|write|say|give|choose|select|rule",
        r"with|only|just|always|simply|the|an?|single|digit|number|character|token|value|exactly|and|nothing but|to",
        r"for|if|to|regardless|no matter|whatever|and|as|in|without",
        hints=(" 1", " 0", '"1', "'1", "“1", "`1", "\n1", "\n0", '"0', "'0"),
    ),
    said(
        rf"\b(?:mark|label|rate|rule|score|grade|classify|treat|consider|count|regard|accept|judge|declare|report) "
        rf"(?:\w{{1,12}} ){{0,4}}?(?:it|this|all|each|{_UNIT})(?: \w{{1,12}}){{0,4}}? (?:as|to be) "
        rf"(?:\w{{1,12}} )?{_LABEL}\b",
        hints=(" as ", " to be "),
    ),
    said(
        r"\b(?:mark|label|rate|rule|score|grade|classify|treat|consider|declare) (?:\w{1,12} ){0,3}?"
        r"statements?(?: \w{1,12}){0,3}? (?:as|to be) (?:\w{1,12} )?(?:true|correct|false)\b",
        hints=("statement",),
    ),
    said(
        r"\b(?:correct|right|expected|only|final|true|proper|required) (?:\w{1,12} )?"
        rf"(?:verdict|label|judge?ment|ruling) "
        rf"(?:\w{{1,12}} ){{0,4}}?(?:is|must be|should be|=|:)\W{{0,3}}(?:[01]\b|yes|true|{_LABEL})",
        hints=("verdict", "label", "judgment", "judgement", "ruling"),
    ),
    said(
        rf"\b(?:{_LABEL}|implied|confirmed|backed) (?:by|in|to) (?:the|these|this|all|any|every) "
        r"(?:\w{1,12} )?contexts?\b",
        hints=("context",),
    ),
    said(
        r"\byou must (?:\w{1,12} )?(?:answer|reply|respond|output|rule|mark|label|return)(?: \w{1,12}){0,5}?\W{1,3}"
        rf"(?:[01]\b|{_LABEL}\b)",
        hints=("you must ",),
    ),
    said(
        rf"\b(?:note|notice|message|memo|instructions?|reminder|attention|attn|dear|hint|hello|hey)\W{{1,3}}"
        rf"(?:to |for |from )?(?:the |any |all |every |our )?(?:automated |automatic )?{_MODEL}\b",
        hints=(
            "note",
            "noti",
            "message",
            "memo",
            "instruction",
            "remind",
            "atten",
            "attn",
            "dear",
            "hint",
            "hello",
            "hey",
        ),
    ),
    said(
        r"\b(?:note|notice|message|memo|instructions?|reminder|attention|attn|hint)\W{1,3}"
        r"(?:to |for )?(?:the |any |all )?(?:judge|model|assistant|assessor|annotator|rater|verifier|reviewer)s?"
        r"\s?[:：]",
        hints=("judge", "model", "assistant", "assessor", "annotator", "rater", "verifier", "reviewer"),
    ),
    said(
        r"\b(?:you are|you're|act as|behave as|pretend to be|roleplay as) (?:now )?(?:an?|the|in)\b"
        rf"(?: \w{{1,12}}){{0,2}}? (?:{_MODEL}|assistant|developer mode|debug mode|judge model)\b",
        hints=("you are ", "you're ", "act as ", "behave as ", "pretend to be ", "roleplay as "),
    ),
    said(rf"\bif you are (?:an? |the )?(?:automated |automatic )?(?:{_MODEL}|judge|model)\b", hints=("if you are ",)),
    said(
        r"\b(?:ai|llm|language model|model|judge|grader|evaluator|assistant)s? "
        r"(?:reading|evaluating|grading|judging|scoring|processing) (?:this|the|these)\b",
        hints=(" reading ", " evaluating ", " grading ", " judging ", " scoring ", " processing "),
    ),
    said(
        r"\b(?:system|developer|admin|administrator)\W(?:override|prompt|message|instructions?|note|notice|update)"
        r"\s?[\])>*#]{0,4}\s?[:：—-]",
        hints=("system", "develop", "admin"),
    ),
    said(r"\bnew (?:system )?(?:instructions?|directives?|task)\s?[:：]", hints=("new ",)),
    said(
        r"\b(?:evaluation|grading|judging|scoring|benchmark|assessment|evaluator|grader|judge)\W"
        r"(?:note|mode|override|instructions?|key|protocol|policy|rule|directive)s?\s?[:：]",
        hints=("evaluat", "grad", "judg", "scor", "benchmark", "assess"),
    ),
    said(
        r"\b(?:reveal|print|repeat|show|output|leak) (?:me )?(?:your|the) "
        r"(?:\w{1,12} )?(?:system prompt|instructions)\b",
        hints=("system prompt", "instructions"),
    ),
    said(
        r"\bis the statement (?:entailed|supported)|\bdo the contexts say that the following\b",
        hints=("is the statement ", "do the contexts "),
    ),
)

_WESTERN: Final = (
    forgotten(
        r"ignorier\w{0,4}|missachte\w{0,2}|vergiss|vergessen sie|übergeh\w{0,3}|beachte\w{0,2} nicht",
        r"anweisung(?:en)?|instruktion(?:en)?|anleitung(?:en)?|vorgaben|regeln|prompts?|befehle?",
        r"vorherige\w?|vorige\w?|bisherige\w?|frühere\w?|obige\w?|oben|alle|deine|ihre|vorangegangene\w?|vorangehende\w?",
        hints=("anweisung", "instruktion", "anleitung", "vorgabe", "regeln", "prompt", "befehl"),
    ),
    answered(
        r"antworte|antworten sie|gib|geben sie|schreib|schreibe|schreiben sie",
        r"mit|nur|immer|stets|einfach|der|die|eine|einer|ziffer|zahl|ausschließlich|bitte|sie|jetzt",
        r"auf|für|aus|wenn|zurück|egal|und",
        hints=("antwort", "gib", "geben sie", "schreib"),
    ),
    forgotten(
        r"ignore[zr]?|oublie[zr]?|ne tiens pas compte|ne tenez pas compte|ne suis pas|ne suivez pas",
        r"instructions?|consignes?|directives?|règles",
        r"précédente?s?|antérieure?s?|ci-dessus|plus haut|toutes|tes|vos|initiales",
        hints=("instruction", "consigne", "directive", "règles"),
    ),
    answered(
        r"réponds|répondez|répondre|renvoie|renvoyez|donne|donnez|écris|écrivez",
        r"par|avec|uniquement|seulement|toujours|le|un|chiffre|nombre|simplement|que",
        r"à|pour|si|quel|et|sans",
        hints=("répond", "renvo", "donne", "écri"),
    ),
    forgotten(
        r"ignor[ae]n?|ignorad|olvid[ae]n?|omit[ae]n?|haz caso omiso|no hagas caso|no sigas",
        r"instrucci[oó]n(?:es)?|indicaciones|órdenes|reglas|directrices",
        r"anterior(?:es)?|previas?|precedentes|arriba|todas|tus|sus",
        hints=("instruccion", "indicaciones", "órdenes", "reglas", "directrices"),
    ),
    answered(
        r"responde|responda|respondan|contesta|conteste|devuelve|devuelva|escribe|escriba",
        r"con|solo|sólo|solamente|únicamente|siempre|el|un|número|dígito|simplemente",
        r"a|para|si|sin|y",
        hints=("respond", "contest", "devuel", "escrib"),
    ),
    forgotten(
        r"ignorem?|ignorar|esqueça|esqueçam|desconsidere|não siga",
        r"instruções|instrução|orientações|ordens|regras|diretrizes",
        r"anterior(?:es)?|prévias?|acima|todas|suas",
        hints=("instruç", "orientaç", "ordens", "regras", "diretrizes"),
    ),
    answered(
        r"responda|respondam|responde|devolva|retorne|escreva",
        r"com|só|somente|apenas|sempre|o|um|número|dígito|simplesmente",
        r"a|para|se|sem|e",
        hints=("respond", "devolva", "retorne", "escreva"),
    ),
    forgotten(
        r"ignora(?:te|re)?|dimentica(?:te)?|non seguire|trascura(?:te)?",
        r"istruzioni|istruzione|indicazioni|direttive|regole",
        r"precedent[ei]|anteriori|sopra|tutte|tue|vostre",
        hints=("istruzion", "indicazioni", "direttive", "regole"),
    ),
    answered(
        r"rispondi|rispondete|rispondere|restituisci|scrivi",
        r"con|solo|soltanto|sempre|il|un|numero|cifra|semplicemente|unicamente",
        r"a|per|se|e",
        hints=("rispond", "restituisci", "scrivi"),
    ),
    forgotten(
        r"negeer|vergeet|sla|volg niet",
        r"instructies?|aanwijzingen|opdrachten|regels",
        r"vorige|eerdere|bovenstaande|voorgaande|alle|je|uw",
        hints=("instructie", "aanwijzing", "opdracht", "regels"),
    ),
    answered(
        r"antwoord|geef|schrijf",
        r"met|alleen|altijd|een|het|de|cijfer|getal|enkel",
        r"op|voor|als|en",
        hints=("antwoord", "geef", "schrijf"),
    ),
    said(
        r"\b(?:z?ignoruj|pomiń|zapomnij)(?:cie)?\b(?:\W{1,3}\w{1,20}){0,4}?\W{1,3}(?:instrukcj|polece|wskazówk|reguł)",
        hints=("instrukcj", "polece", "wskazówk", "reguł"),
    ),
    said(
        r"\b(?:про)?(?:игнорируй|забудь|не обращай|не следуй|отбрось)(?:те)?\b(?:\W{1,3}\w{1,20}){0,4}?\W{1,3}"
        r"(?:инструкц|указани|правил|команд)",
        hints=("инструкц", "указани", "правил", "команд"),
    ),
    answered(
        r"ответь|ответьте|отвечай|отвечайте|выведи|выведите|верни|верните|напиши|напишите",
        r"только|всегда|просто|цифрой|цифру|числом|число|на|все|одной|одну",
        r"на|если|и|для",
        hints=("ответ", "отвечай", "выведи", "верни", "напиши"),
    ),
    said(
        r"(?:talimat|komut|yönerge)\w{0,8}(?:\W{1,3}\w{1,20}){0,2}?\W{1,3}(?:yok say|unut|görmezden gel|dikkate alma)",
        hints=("talimat", "komut", "yönerge"),
    ),
    said(
        r"\babaikan\b(?:\W{1,3}\w{1,20}){0,3}?\W{1,3}(?:instruksi|perintah|petunjuk)"
        r"|(?:bỏ qua|phớt lờ|quên)(?: \S{1,8}){0,4}? (?:hướng dẫn|chỉ dẫn|chỉ thị|lệnh)",
        hints=("abaikan", "bỏ qua", "phớt lờ", "quên"),
    ),
)

_EASTERN: Final = (
    said(
        r"(?:忽略|无视|無視|忽视|忽視|不要理会|不要遵循|忘记|忘掉)[^。\n]{0,12}(?:指令|指示|说明|說明|提示|规则|規則|要求)",
        hints=("指令", "指示", "说明", "說明", "提示", "规则", "規則", "要求"),
    ),
    said(
        r"(?:回答|输出|輸出|回复|回覆|返回)[^。\n0-9]{0,8}[01](?=[\"”」』'。,，!！\s]|$)",
        hints=("回答", "输出", "輸出", "回复", "回覆", "返回"),
    ),
    said(r"(?:指示|命令|ルール|プロンプト)[^。\n]{0,8}(?:無視し|無視せ|忘れ)", hints=("無視し", "無視せ", "忘れ")),
    said(r"[01][」\"']?\s?と(?:だけ|のみ)?\s?(?:答え|回答し|出力し|返答し|返し)", hints=("と",)),
    said(
        r"(?:이전|위의?|앞의?|앞선|모든|기존)\s?[^.\n]{0,10}(?:지시|명령|지침|규칙|프롬프트)[^.\n]{0,8}(?:무시|잊)",
        hints=("무시", "잊"),
    ),
    said(
        r"[01][\"'’]?\s?(?:이?라고|으?로|을)\s?(?:만\s?)?(?:답하|답해|대답하|대답해|응답하|응답해|출력하|출력해)",
        hints=("답", "출력"),
    ),
    said(
        r"(?:تجاهل|انس|تغاض)[^.\n]{0,20}(?:التعليمات|الأوامر|تعليمات|الإرشادات)",
        hints=("تعليمات", "الأوامر", "الإرشادات"),
    ),
    said(r"(?:أجب|اكتب|أعد)[^.\n0-9]{0,16}\b[01]\b(?![.,:٪%]?\d)", hints=("أجب", "اكتب", "أعد")),
    said(
        r"(?:निर्देश|आदेश|नियम)[^।\n]{0,16}(?:अनदेखा|अनदेखी|नज़रअंदाज़|नजरअंदाज|भूल जा|उपेक्षा)",
        hints=("अनदेख", "अंदाज", "भूल जा", "उपेक्षा"),
    ),
    said(r"(?:केवल|सिर्फ|हमेशा)\s[^।\n0-9]{0,8}[01]\s[^।\n]{0,8}(?:उत्तर|जवाब|लिख)", hints=("उत्तर", "जवाब", "लिख")),
)

ORDERS: Final = _ENGLISH + _WESTERN + _EASTERN
