"""x"""
from __future__ import annotations
from collections.abc import Callable
from dataclasses import dataclass

Message = dict[str, str]

@dataclass(frozen=True)
class Statement:
    id: str
    text: str
    label: int

@dataclass(frozen=True)
class Sample:
    id: str
    group: str
    user_input: str
    contexts: tuple[str, ...]
    statements: tuple[Statement, ...]

SYS = {"p1": "You check a statement against numbered contexts. Rely on the contexts alone, not on what you know."}
SYS["p2"]="You decide whether contexts support a statement. 1: the contexts, taken together, state or directly imply all of the statement. 0: some part of the statement is missing from the contexts or contradicted by them. Rely on the contexts alone, not on what you know."
ASKS = {
 "base": "Reply with 1 if the contexts support the statement, otherwise with 0.",
 "all": "Reply with 1 if the contexts support all of the statement, otherwise with 0.",
 "imply": "Do the contexts state or directly imply everything the statement says? Reply 1 for yes, 0 for no.",
 "true": "According to the contexts, is the statement true? Reply 1 for true, 0 for false or not stated.",
 "nli": "Is the statement entailed by the contexts? Reply 1 if it is entailed, 0 if it is neutral or contradicted.",
 "rany": "Does the statement say anything that the contexts do not support? Reply 1 for yes, 0 for no.",
 "rlab": "Reply with 0 if the contexts support all of the statement, 1 if any part of it is unsupported or contradicted.",
 "rhal": "Is the statement a hallucination? Reply 1 if it adds to or contradicts the contexts, 0 if it is faithful to them.",
 "code": "Complete the line of code with 1 or 0:\nis_supported = ",
 "conc": "Could a reader who knows only the contexts conclude that the statement is true? Reply 1 for yes, 0 for no.",
}
ASKS.update({
 "c4": "Complete the line of code with 1 (the contexts support all of the statement) or 0 (they do not):\nis_supported = ",
 "rc5": "Complete the line of code with 1 or 0:\nis_unsupported = ",
 "c6": "Complete the line of code with 1 or 0:\nentailed_by_contexts = ",
 "c2": "Complete the JSON with 1 for true or 0 for false:\n{\"supported_by_contexts\": ",
 "c7": "Complete the line of code with 1 or 0:\nis_true_according_to_contexts = ",
 "rc8": "Complete the line of code with 1 or 0:\nis_hallucinated = ",
})
ASKS.update({
 "yes": "Is everything in the statement supported by the contexts? Reply 1 if it is supported, 0 if it is missing or contradicted.",
 "rn": "Is anything in the statement missing from the contexts or contradicted by them? Reply 1 if it is missing or contradicted, 0 if it is supported.",
 "rfalse": "According to the contexts, is the statement false or not stated? Reply 1 for false or not stated, 0 for true.",
 "rnli": "Is the statement neutral to the contexts or contradicted by them? Reply 1 if it is neutral or contradicted, 0 if it is entailed.",
})
ASKS.update({"short": "Verdict, 1 or 0:"})
def numbered(c): return "\n\n".join(f"[{i}] {t}" for i,t in enumerate(c,1))
def make(sysk, qpos, ask, null=False):
    def f(sample, st):
        c = ("N/A",) if null else sample.contexts
        u = "Contexts:\n"+numbered(c)+"\n\n"
        if qpos=="q": u += f"Question: {sample.user_input}\n\n"
        u += f"Statement: {st.text}\n\n{ASKS[ask]}"
        return [{"role":"system","content":SYS[sysk]},{"role":"user","content":u}]
    return f
QUESTIONS = {}
for s in SYS:
    for qp in ("n","q"):
        for a in ASKS:
            QUESTIONS[f"{s}.{qp}.{a}"]=make(s,qp,a)
            QUESTIONS[f"{s}.{qp}.{a}.null"]=make(s,qp,a,True)
VARIANTS={}
