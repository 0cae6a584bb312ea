"""Words and letters of languages that prompts use. They only add: no word opens a secret."""

import re
from typing import Final

# Answers that mean yes and no: letters of the catalogues of apt, gpg and the locales, then words.
_PAIRS: Final = (
    "y n|j n|o n|s n|t n|i n|a n|á n|d n|b n|e h|k e|c k|y t|j e|b e|o h|e n|p j|i l|h y"
    "|д н|т н|и ж|о ж|т ү|ν ο|כ ל|ن ل|ह न|是 否|是 不"
    "|yes no|ja nein|ja nee|ja nej|ja nei|já nei|jah ei|oui non|si no|sí no|sì no|sí non|si non"
    "|sim não|tak nie|ano ne|áno nie|igen nem|da nu|da ne|ya tidak|có không|kyllä ei|evet hayır"
    "|hə yox|bai ez|taip ne|jā nē|po jo|ndiyo hapana|iva le|jes ne|ie na|bəli xeyr"
    "|да нет|да не|так ні|так не|иә жоқ"
    "|ооба жок|тийм үгүй|ναι όχι|այո ոչ|კი არა|כן לא|نعم لا|بله نه|بله خیر|ہاں نہیں"
    "|हाँ नहीं|हां नहीं|होय नाही|हो होइन|হ্যাঁ না|હા નહીં|ਹਾਂ ਨਹੀਂ|ஆம் இல்லை"
    "|అవును వద్దు|ಹೌದು ಇಲ್ಲ|ഉവ്വ് അല്ല|ඔව් නැත|ใช่ ไม่ใช่|ใช่ ไม่|是 不是|はい いいえ"
    "|예 아니오|예 아니요|네 아니오|네 아니요"
)
_MEANINGS: Final = frozenset(frozenset(pair.split()) for pair in _PAIRS.split("|"))
_ALONE: Final = "y n yes no ja nein oui non sí sim não да нет"
_LONE: Final = frozenset(_ALONE.split())


def means_yes_and_no(answers: set[str]) -> bool:
    """Return whether one of two answers means yes, and the other no, in some language."""
    return frozenset(answer.casefold() for answer in answers) in _MEANINGS


def means_yes_or_no(answer: str) -> bool:
    """Return whether an answer means yes, or no, also where the other one is not named."""
    return answer.casefold() in _LONE


_NOTHING: Final = "none null nil empty blank optional required any unset"
_KEYS: Final = "enter return esc"
_STATES: Final = "ok done failed fail skipped passed pass warning error"
NO_VALUES: Final = frozenset(f"{_NOTHING} {_KEYS} {_STATES}".split())
"""Words that stand where a default would, and are none: for nothing, of keys, and of a state."""

DEFAULTS: Final = (
    "default|(?:par )?défaut|vorgabe|voreinstellung|standard|predeterminad[oa]|por defecto"
    "|padrão|predefinit[oa]|standaard|domyślnie|varsayılan|výchozí|alapértelmezett|oletus"
    "|förvalt|mặc định|по умолчанию|за замовчуванням|既定値?|デフォルト|默认值?|預設值?"
    "|기본값|افتراضي"
)
"""Words that name the answer which Enter alone gives."""

CHOOSING: Final = re.compile(
    r"\b(?:select\w*|choice|choose|option|pick|your decision|numeric|answer"
    r"|(?:enter|type) (?:a|the) number|(?:aus)?wahl\w*|wähle\w*|choix|choisi\w+"
    r"|opci[oó]n|elij\w+|elecci[oó]n|seleccion\w+|op[cç][aã]o"
    r"|escolh\w+|scelta|scegli\w*|keuze|kies|wyb[oó]r|wybierz|выбор|выберите|вибір|виберіть|seçi\w+"
    r"|val|välj\w*|valg|vælg|velg|volba|výběr|zvolte|vyberte|valinta\w*|választ\w*|επιλογή|alegeți"
    r"|pilih\w*)\b|选择|選擇|選択|선택|اختر|اختيار|בחר|चुन",
    re.IGNORECASE,
)
"""Words with which a prompt asks for one of the things listed above it."""

HOW_MANY: Final = re.compile(
    r"\b(?:how many|wie viele?|combien|cuánt[oa]s|quant[oiae]s?|hoeveel|ile|сколько|скільки|kaç)\b"
    r"|いくつ|何個|几个|多少|몇",
    re.IGNORECASE,
)
"""Words that only a number answers."""

COUNTS: Final = re.compile(
    r"\b(?:number|how many|count|port|age|days|seconds|minutes|hours|bits|percent|anzahl|nombre de"
    r"|cuántos|quantos|quante|aantal|liczba|количество|кількість|sayısı|antal|počet)\b|size\b"
    r"|いくつ|多少|개수",
    re.IGNORECASE,
)
"""Words for what is counted."""

PATHS: Final = re.compile(
    r"\s*(?:\w+ ){0,3}(?:path|pfad|chemin|ruta|caminho|percorso|ścieżka|путь|шлях)\b[^?]*[:：]\s*\Z"
    r"|.{0,40}(?:路径|パス|경로)[^?]{0,40}[:：]\s*\Z",
    re.IGNORECASE,
)
"""A demand for a path, with what the path is for."""

PLACES: Final = re.compile(
    r"\b(?:file in which|path|directory|folder|file ?name|verzeichnis|pfad|répertoire|chemin"
    r"|directorio|ruta|carpeta|diretório|caminho|cartella|percorso|pad|ścieżka|katalog|каталог|путь"
    r"|шлях|dizin|sökväg|cesta)\b|目录|路径|ディレクトリ|パス|경로",
    re.IGNORECASE,
)
"""Words for the place of a file."""

FREE: Final = re.compile(
    r"\b(?:name[ds]?|hostname|description|comment|message|title|author|e-?mail|subject"
    r"|organi[sz]ation)\b",
    re.IGNORECASE,
)
"""Words for what a person makes up."""

CLOSED: Final = re.compile(
    r"\b(?:user|country|region|zone|format|type|mode|level|locale|encoding|language|device|disk)\b",
    re.IGNORECASE,
)
"""Words for what has to exist already, or is one of few, even if it has a name."""
