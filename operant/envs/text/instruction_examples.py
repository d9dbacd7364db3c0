"""The shortest texts that follow an instruction, and that break it: what its check is tried with.

They are written from the meaning of each instruction, without a look at how the check reads a text.
"""

# Letters that look like Latin ones are the point here.
# ruff: noqa: RUF001
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LANGUAGES = {
    "en": "The children were playing in the garden when it began to rain, and they ran into the house.",
    "de": "Die Kinder spielten im Garten, als es zu regnen begann, und sie liefen schnell in das Haus.",
    "fi": "Lapset leikkivät puutarhassa, kun alkoi sataa, ja he juoksivat nopeasti sisälle, mutta se ei haitannut.",
    "it": "I bambini giocavano nel giardino quando ha cominciato a piovere e sono corsi in casa con la nonna.",
    "pt": "As crianças brincavam no jardim quando começou a chover e correram para dentro de casa com os avós.",
    "es": "Los niños jugaban en el jardín cuando empezó a llover y corrieron a la casa con sus abuelos.",
    "fr": "Les enfants jouaient dans le jardin quand il a commencé à pleuvoir et ils sont rentrés à la maison.",
    "sw": "Watoto walikuwa wakicheza katika bustani wakati mvua ilianza kunyesha na wakakimbia ndani ya nyumba yao.",
    "vi": "Những đứa trẻ đang chơi trong vườn khi trời bắt đầu mưa và các em đã chạy vào nhà với bà.",
    "ru": "Дети играли в саду, когда начался дождь, и они быстро побежали в дом, но это их не огорчило.",
    "bg": "Децата играеха в градината, когато започна да вали, и те се прибраха бързо в къщата на баба си.",
    "uk": "Діти гралися в саду, коли почався дощ, і вони швидко побігли до хати, але це їх не засмутило.",
    "ar": "كان الأطفال يلعبون في الحديقة عندما بدأ المطر ثم ركضوا إلى البيت مع جدهم",
    "fa": "بچه ها در باغ بازی می کردند که باران شروع شد و آن ها با مادربزرگ به خانه رفتند",
    "ur": "بچے باغ میں کھیل رہے تھے کہ بارش شروع ہو گئی اور وہ گھر کے اندر بھاگ گئے ہیں",
    "hi": "बच्चे बगीचे में खेल रहे थे कि बारिश शुरू हो गई और वे घर के अंदर भाग गए, यह अच्छा है।",
    "mr": "मुले बागेत खेळत होती आणि पाऊस सुरू झाला, तेव्हा ती घरात पळाली, हे चांगले आहे.",
    "ne": "बच्चाहरू बगैंचामा खेल्दै थिए र पानी पर्न थाल्यो, तर उनीहरू घर भित्र दौडे, यो राम्रो छ।",
    "bn": "শিশুরা বাগানে খেলছিল যখন বৃষ্টি শুরু হলো।",
    "gu": "બાળકો બગીચામાં રમતા હતા ત્યારે વરસાદ શરૂ થયો.",
    "pa": "ਬੱਚੇ ਬਾਗ ਵਿੱਚ ਖੇਡ ਰਹੇ ਸਨ ਜਦੋਂ ਮੀਂਹ ਸ਼ੁਰੂ ਹੋਇਆ।",
    "kn": "ಮಕ್ಕಳು ತೋಟದಲ್ಲಿ ಆಡುತ್ತಿದ್ದಾಗ ಮಳೆ ಶುರುವಾಯಿತು.",
    "ta": "குழந்தைகள் தோட்டத்தில் விளையாடிக் கொண்டிருந்தபோது மழை தொடங்கியது.",
    "te": "పిల్లలు తోటలో ఆడుకుంటున్నప్పుడు వర్షం మొదలైంది.",
    "th": "เด็ก ๆ กำลังเล่นอยู่ในสวนเมื่อฝนเริ่มตก",
    "ko": "아이들이 정원에서 놀고 있을 때 비가 내리기 시작했다.",
    "ja": "子供たちが庭で遊んでいると雨が降り始めた。",
    "zh": "孩子们在花园里玩的时候下起了雨。",
    "el": "Τα παιδιά έπαιζαν στον κήπο όταν άρχισε να βρέχει.",
    "he": "הילדים שיחקו בגינה כשהתחיל לרדת גשם.",
}
NOTHING = "Qzx."  # a response that says nothing


def keeping(instruction: str, arguments: Mapping[str, Any]) -> str:
    """A text that follows an instruction."""
    return _example(instruction, arguments, kept=True)


def breaking(instruction: str, arguments: Mapping[str, Any]) -> str:
    """A text that does not follow an instruction."""
    return _example(instruction, arguments, kept=False)


def _example(instruction: str, arguments: Mapping[str, Any], kept: bool) -> str:
    given = {name: value for name, value in arguments.items() if value is not None}
    relation = next((value for name, value in given.items() if name.endswith("relation")), None)
    if relation is not None:
        return _counted(instruction, given, many=(relation == "at least") == kept)
    if instruction in _FIXED:
        return _FIXED[instruction][0 if kept else 1]
    return _with_arguments(instruction, given, kept)


def _counted(instruction: str, given: Mapping[str, Any], many: bool) -> str:
    """As many things as the bound says, or one fewer."""
    kind = instruction.partition(":")[2]
    names = {"frequency": "frequency", "letter_frequency": "let_frequency", "number_sentences": "num_sentences"}
    names |= {"number_words": "num_words", "capital_word_frequency": "capital_frequency"}
    count = given[names[kind]] - (not many)
    filler = "" if count else "???"  # no word, no sentence, no letter, and yet not empty
    thing = {
        "frequency": given.get("keyword", "") + " ",
        "letter_frequency": given.get("letter", "") + " ",
        "number_sentences": "It is so. ",
        "number_words": "word ",
        "capital_word_frequency": "WORD ",
    }[kind]
    return thing * count + filler


_FIXED: dict[str, tuple[str, str]] = {
    "detectable_format:constrained_response": ("My answer is maybe.", "I would rather not say."),
    "detectable_format:json_format": ('```json\n{"a": [1, 2]}\n```', "{a: 1}"),
    "detectable_format:title": ("<<A title>>\nAnd the text.", "A title\nAnd the text."),
    "combination:two_responses": ("The first.\n******\nThe second.", "The only one."),
    "startend:quotation": ('"All of it is said."', 'He said "all of it".'),
    "change_case:english_capital": ("THIS IS THE TEXT OF THE ANSWER.", "This is the text of the answer."),
    "change_case:english_lowercase": ("this is the text of the answer.", "This is the text of the answer."),
    "punctuation:no_comma": ("No such mark here.", "Here, there is one."),
}


def _with_arguments(instruction: str, given: Mapping[str, Any], kept: bool) -> str:
    match instruction.partition(":")[2]:
        case "existence":
            return " ".join(given["keywords"]) if kept else NOTHING
        case "forbidden_words":
            return NOTHING if kept else f"{NOTHING} {given['forbidden_words'][-1]}"
        case "response_language":
            return LANGUAGES[given["language"]] if kept else LANGUAGES["fi" if given["language"] == "en" else "en"]
        case "number_paragraphs":
            return "\n***\n".join(["Text."] * (given["num_paragraphs"] + (not kept)))
        case "nth_paragraph_first_word":
            opened = given["nth_paragraph"] - 1
            words = [given["first_word"] if kept and i == opened else "Other" for i in range(given["num_paragraphs"])]
            return "\n\n".join(f"{word} text." for word in words)
        case "number_placeholders":
            return "[name] " * (given["num_placeholders"] - (not kept)) + "and text"
        case "postscript":
            return f"Text.\n\n{given['postscript_marker'] if kept else 'And'} one thing more."
        case "number_bullet_lists":
            return "* a point\n" * (given["num_bullets"] + (not kept))
        case "number_highlighted_sections":
            return "*a part* of text\n" * (given["num_highlights"] - (not kept)) + "text"
        case "multiple_sections":
            parts = range(1, given["num_sections"] + kept)
            return "".join(f"{given['section_spliter']} {i}\ntext\n" for i in parts) + "end"
        case "repeat_prompt":
            return f"{given['prompt_to_repeat'] if kept else 'Of course.'}\n\nThe answer."
        case "end_checker":
            return f"Text. {given['end_phrase']}" if kept else f"{given['end_phrase']} And text."
    raise KeyError(instruction)
