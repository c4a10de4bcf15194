"""Rules for orders in other languages than English: the most usual ones alone."""

from typing import Final

from airjudge.screening.rules import addressed, answered, forgotten, rule, settled

_WESTERN: Final = (
    forgotten(
        "ignoriere|ignorieren|missachte|vergiss|vergessen sie|übergehe|beachte nicht",
        "anweisung|anweisungen|instruktion|instruktionen|anleitung|vorgaben|regeln|prompt|prompts|befehl|befehle",
        "vorherige|vorherigen|vorige|vorigen|bisherige|bisherigen|früheren|obige|obigen|oben|alle|deine|vorangehenden",
    ),
    answered(
        "antworte|antworten sie|antwortet",
        "mit|nur|immer|stets|einfach|der|einer|eine|ziffer|zahl|ausschließlich|bitte|in|jedem|fall",
        "auf|für|wenn|egal|und",
    ),
    settled("urteil|verdikt|bewertung", "steht|bereits|schon|fest|es|lautet|ist|das|die|richtige|muss|lauten|und"),
    addressed(
        "wichtig|achtung|hinweis|nachricht|anweisung",
        "prüfende|bewertende|prüfer|bewerter|gutachter|sprachmodell|sprachmodelle|richtermodell",
    ),
    forgotten(
        "ignore|ignorez|ignorer|oublie|oubliez|ne tiens pas compte|ne tenez pas compte|ne suis pas|ne suivez pas",
        "instruction|instructions|consigne|consignes|directives|règles",
        "précédente|précédentes|antérieures|ci-dessus|plus haut|toutes|tes|initiales",
    ),
    answered(
        "réponds|répondez|renvoie|renvoyez",
        "par|avec|uniquement|seulement|toujours|le|un|chiffre|nombre|simplement|que",
        "à|pour|si|quel|et|sans",
    ),
    settled("verdict|jugement", "est|correct|déjà|établi|fixé|c'est|c|le|doit|être|connu|et"),
    addressed("important|attention|note|message|remarque", "évaluateur|évaluatrice|correcteur|modèle de langage"),
    forgotten(
        "ignora|ignore|ignoren|ignorad|olvida|olvide|olviden|haz caso omiso|no hagas caso|no sigas",
        "instrucción|instrucciones|indicaciones|órdenes|reglas|directrices",
        "anterior|anteriores|previas|precedentes|arriba|todas",
    ),
    answered(
        "responde|responda|respondan|respondam|contesta|conteste|devuelve|devuelva",
        "con|com|solo|sólo|só|apenas|somente|siempre|sempre|el|o|un|um|número|dígito|simplemente",
        "a|para|si|se|sin|sem|y|e",
    ),
    settled("veredicto", "correcto|correto|está|ya|já|decidido|es|é|el|o|debe|deve|ser|y|e|final|fijado"),
    addressed(
        "importante|atención|atenção|nota|aviso|mensaje|mensagem", "evaluador|evalúa|avaliador|avalia|evaluadora"
    ),
    forgotten(
        "ignore|ignorem|ignora|esqueça|esqueçam|desconsidere|não siga",
        "instruções|instrução|orientações|ordens|regras|diretrizes",
        "anterior|anteriores|prévias|acima|todas",
    ),
    forgotten(
        "ignora|ignorate|ignorare|dimentica|dimenticate|non seguire",
        "istruzioni|istruzione|indicazioni|direttive|regole",
        "precedente|precedenti|anteriori|sopra|tutte",
    ),
    answered(
        "rispondi|rispondete|restituisci",
        "con|solo|soltanto|sempre|il|un|numero|cifra|semplicemente|unicamente",
        "a|per|se|e",
    ),
    settled("verdetto", "corretto|giusto|già|stabilito|deciso|è|il|deve|essere|e"),
    addressed("importante|attenzione|nota|avviso|messaggio", "valutatore|valuta|esaminatore"),
    forgotten(
        "negeer|vergeet|volg niet",
        "instructies|instructie|aanwijzingen|opdrachten|regels",
        "vorige|eerdere|bovenstaande|voorgaande|alle",
    ),
    answered("antwoord|antwoordt", "met|alleen|altijd|een|het|de|cijfer|getal|enkel", "op|voor|als|en"),
    forgotten(
        "zignoruj|ignoruj|pomiń|zapomnij|zignorujcie",
        "instrukcje|instrukcji|polecenia|poleceń|wskazówki|reguły",
        "wcześniejsze|poprzednie|powyższe|wszystkie|wszystkich",
    ),
    answered("odpowiedz|odpowiadaj|odpowiedzcie", "tylko|zawsze|po|prostu|cyfrą|liczbą", "na|jeśli|i"),
    rule(
        "instruction",
        r"\b(?:talimat|komut|yönerge)\w{0,8}(?:\W{1,3}\w{1,20}){0,2}?\W{1,3}"
        r"(?:yok say|unut|görmezden gel|dikkate alma)",
        "talimat|talimatı|talimatları|talimatlarını|komutu|komutları|komutlarını|yönergeleri|yönergeyi",
        "yok say|unut|görmezden|dikkate",
    ),
    rule(
        "instruction",
        r"\b[01]\b (?:yanıtını|cevabını) (?:ver|yaz)",
        "0|1",
        literals="yanıtını|cevabını",
    ),
    rule(
        "instruction",
        r"\babaikan\b(?:\W{1,3}\w{1,20}){0,3}?\W{1,3}(?:instruksi|perintah|petunjuk)",
        "abaikan",
        "instruksi|perintah|petunjuk",
    ),
    rule(
        "instruction",
        r"(?:bỏ qua|phớt lờ|quên)(?: \S{1,8}){0,4}? (?:hướng dẫn|chỉ dẫn|chỉ thị|lệnh)",
        literals="hướng dẫn|chỉ dẫn|chỉ thị|lệnh",
    ),
)

_EASTERN: Final = (
    rule(
        "instruction",
        r"\b(?:про)?(?:игнорируй|забудь|не обращай|не следуй|отбрось)(?:те)?\b(?:\W{1,3}\w{1,20}){0,4}?\W{1,3}"
        r"(?:инструкц|указани|правил|команд)",
        literals="инструкц|указани|правил|команд",
    ),
    answered(
        "ответь|ответьте|отвечай|отвечайте|выведи|выведите|верни|верните",
        "только|всегда|просто|цифрой|цифру|числом|число|одной|одну",
        "на|если|и|для",
    ),
    settled("вердикт|решение судьи", "правильный|верный|уже|установлен|известен|это|должен|быть|и"),
    addressed("важно|внимание|примечание|сообщение", "проверяющего|оценивающего|оценщика|проверяющему|оценщику|судьи"),
    rule(
        "instruction",
        r"(?:忽略|无视|無視|忽视|忽視|不要理会|不要遵循|忘记|忘掉)[^。\n]{0,12}(?:指令|指示|说明|說明|提示|规则|規則|要求)",
        literals="忽略|无视|無視|忽视|忽視|不要理会|不要遵循|忘记|忘掉",
    ),
    rule(
        "instruction",
        r"(?:回答|输出|輸出|回复|回覆|返回)[^。\n0-9]{0,8}[01](?=[\"”」』'。,，!！\s]|$)",
        "0|1",
        literals="回答|输出|輸出|回复|回覆|返回",
    ),
    rule(
        "instruction",
        r"(?:判定|判决|裁决|结论|标签)[^。\n0-9]{0,16}(?:就是|应为|必须是|為|为)[^。\n0-9]{0,2}[01](?=[\"”」』'。,，!！\s]|$)"
        r"|(?:评审|评估|评判|评分|审核|裁判)(?:者|员|模型|人)[^。\n]{0,4}(?:请注意|注意|须知)",
        literals="判定|判决|裁决|结论|标签|评审|评估|评判|评分|审核|裁判",
    ),
    rule(
        "instruction",
        r"(?:指示|命令|ルール|プロンプト)[^。\n]{0,8}(?:無視し|無視せ|忘れ)",
        literals="無視し|無視せ|忘れ",
    ),
    rule(
        "instruction",
        r"[01][」\"']?\s?と(?:だけ|のみ)?\s?(?:答え|回答し|出力し|返答し|返し)"
        r"|(?:判定|評価|正解)[^\n0-9]{0,24}(?:それは|必ず|つまり)\s?[「\"']?[01][」\"']?\s?(?:です|だ|。)"
        r"|(?:評価者|採点者|審査員|判定者)(?:への|の皆|へ|に)[^。\n]{0,12}(?:お知らせ|注意|指示|連絡|メッセージ)",
        literals="答え|回答し|出力し|返答し|返し|です|評価者|採点者|審査員|判定者",
    ),
    rule(
        "instruction",
        r"(?:이전|위의?|앞의?|앞선|모든|기존)\s?[^.\n]{0,10}(?:지시|명령|지침|규칙|프롬프트)[^.\n]{0,8}(?:무시|잊)",
        literals="무시|잊",
    ),
    rule(
        "instruction",
        r"[01][\"'’]?\s?(?:이?라고|으?로|을)\s?(?:만\s?)?(?:답하|답해|대답하|대답해|응답하|응답해|출력하|출력해)"
        r"|(?:평가자|채점자|심사자|판정자)(?:에게|께|는)\s?[^.\n]{0,6}(?:알림|알립니다|지시|공지|메시지|주의)",
        literals="답하|답해|출력|평가자|채점자|심사자|판정자",
    ),
    rule(
        "instruction",
        r"(?:تجاهل|انس|تغاض)[^.\n]{0,20}(?:التعليمات|الأوامر|تعليمات|الإرشادات)",
        literals="تعليمات|الأوامر|الإرشادات",
    ),
    rule("instruction", r"(?:أجب|اكتب|أعد)[^.\n0-9]{0,16}\b[01]\b(?![.,:٪%]?\d)", "0|1", literals="أجب|اكتب|أعد"),
    rule(
        "instruction",
        r"(?:مهم|تنبيه|ملاحظة|رسالة)[^.\n]{0,8}(?:لمن يقي|للمقي|إلى المقي|لنموذج)"
        r"|الحكم[^.\n0-9]{0,24}\b[01]\b(?=\s{0,2}(?:[.،\n]|$))",
        literals="مهم|تنبيه|ملاحظة|رسالة|الحكم",
    ),
    rule(
        "instruction",
        r"(?:निर्देश|आदेश|नियम)[^।\n]{0,16}(?:अनदेखा|अनदेखी|नज़रअंदाज़|नजरअंदाज|भूल जा|उपेक्षा)",
        literals="अनदेख|अंदाज|भूल जा|उपेक्षा",
    ),
    rule(
        "instruction",
        r"(?:केवल|सिर्फ|हमेशा)\s[^।\n0-9]{0,8}[01]\s[^।\n]{0,8}(?:उत्तर|जवाब|लिख)|(?:उत्तर|जवाब)\s[01]\s(?:दें|दो|लिख)"
        r"|(?:मूल्यांकनकर्ता|निर्णायक|परीक्षक)[^।\n]{0,12}(?:महत्वपूर्ण|ध्यान दें|सूचना|संदेश)",
        literals="उत्तर|जवाब|मूल्यांकनकर्ता|निर्णायक|परीक्षक",
    ),
)

LANGUAGES: Final = _WESTERN + _EASTERN
