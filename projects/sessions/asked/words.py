"""Words and letters of languages that prompts use. They only add: no word opens a secret."""

import re
from typing import Final

# Answers that mean yes and no: letters of the catalogues of apt, gpg and the locales, then words.
_PAIRS: Final = (
    "y n|j n|o n|s n|t n|i n|a n|á n|d n|b n|e h|k e|c k|y t|j e|b e|o h|e n|p j|i l|h y"
    "|д н|т н|и ж|о ж|т ү|ν ο|כ ל|ن ل|ह न|是 否|是 不"
    "|ب خ|ա ո|კ ა|হ ন|yes no|oo hindi"
    "|ja nein|ja nee|ja nej|ja nei|já nei|jah ei|oui non|si no|sí no|sì no|sí non|si non"
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
_YES: Final = frozenset(pair.split()[0] for pair in _PAIRS.split("|"))
_ALL: Final = frozenset(word for pair in _MEANINGS for word in pair)


def means_yes_and_no(answers: set[str]) -> bool:
    """Return whether one of two answers means yes, and the other no, in some language.

    The words and the letters for yes and no may be named together.
    """
    meant = frozenset(answer.casefold() for answer in answers)
    letters = frozenset(answer for answer in meant if len(answer) == 1)
    is_both = letters in _MEANINGS and meant - letters in _MEANINGS
    return meant in _MEANINGS or (is_both and letters == {word[0] for word in meant - letters})


def means_yes_or_no(answer: str) -> bool:
    """Return whether an answer means yes, or no, also where the other one is not named."""
    return answer.casefold() in _LONE


def is_a_word_for_yes(answer: str) -> bool:
    """Return whether a whole word, and not just a letter, means yes in some language."""
    return len(answer) > 1 and answer.casefold() in _YES


def is_short_for(letter: str, answer: str) -> bool:
    """Return whether a letter begins an answer that means yes, or no, in some language."""
    begins = len(letter) == 1 and answer.casefold().startswith(letter)
    return begins and is_a_yes_or_a_no(answer)


def is_a_yes_or_a_no(answer: str) -> bool:
    """Return whether an answer means yes, or no, in some language."""
    return answer.casefold() in _ALL


_WORD_PAIRS: Final = (
    "on off|true false|accept reject|accept decline|agree disagree|enable disable|allow deny"
    "|approve reject|retry cancel|retry abort|ok cancel|continue abort|continue cancel|an aus"
)
_OPPOSITES: Final = frozenset(frozenset(pair.split()) for pair in _WORD_PAIRS.split("|"))


def are_opposites(answers: tuple[str, ...]) -> bool:
    """Return whether two answers are a known pair of words of which one is to be given."""
    return frozenset(answer.casefold() for answer in answers) in _OPPOSITES


OR: Final = (
    "or|oder|ou|o|oppure|of|lub|albo|eller|nebo|alebo|или|або|чи|tai|ya da|veya|vagy|sau|ali|ili"
    "|või|arba|vai|aŭ|atau|hoặc|edo|neu|ή|או|أو|یا|या|หรือ|或|または|또는"
)
"""Words that stand between two answers of which one is to be given."""

_NOTHING: Final = "none null nil empty blank optional required any unset"
_KEYS: Final = "enter return esc"
_STATES: Final = "ok done failed fail skipped passed pass warning error"
NO_VALUES: Final = frozenset(f"{_NOTHING} {_KEYS} {_STATES}".split())
"""Words that stand where a default would, and are none: for nothing, of keys, and of a state."""

DEFAULTS: Final = (
    "default|(?:par )?défaut|vorgabe|voreinstellung|standard|predeterminad[oa]|por defecto"
    "|padrão|predefinit[oa]|standaard|domyślnie|varsayılan|výchozí|alapértelmezett|oletus"
    "|förvalt|mặc định|по умолчанию|за замовчуванням|既定値?|デフォルト|默认值?|預設值?"
    "|기본값|افتراضي|per defecte|типово|öntanımlı|zadano|privzeto|lehenetsia"
)
"""Words that name the answer which Enter alone gives."""

CHOOSING: Final = re.compile(
    r"\b(?:select\w*|choice|choose|option|pick|your decision|numeric|answer|which|what now"
    r"|what (?:do|would) you (?:want|like) to do"
    r"|how (?:should|shall) (?:i|we) (?:deal|handle|treat|proceed)"
    r"|(?:enter|type) (?:a |the )?number(?! of \w+s\b)|(?:aus)?wahl\w*|wähle\w*|choix|choisi\w+"
    r"|opci[oó]n|elij\w+|elecci[oó]n|seleccion\w+|op[cç][aã]o"
    r"|escolh\w+|scelta|scegli\w*|keuze|kies|wyb[oó]r|wybierz|выбор|выберите|вибір|виберіть|seçi\w+"
    r"|val|välj\w*|valg|vælg|velg|volba|výběr|zvolte|vyberte|valinta\w*|választ\w*|επιλογή|alegeți"
    r"|pilih\w*)\b|选择|選擇|選択|선택|اختر|اختيار|בחר|चुन",
    re.IGNORECASE,
)
"""Words with which a prompt asks for one of the things listed above it."""

HOW_MANY: Final = re.compile(
    r"\b(?:number of (?!the\b|your\b)\w+s\b|anzahl (?:der )?\w+|liczba|количество|кількість|aantal"
    r"|go ?to (?:line|page)|(?:partition|port|line|page|column|slot) number(?=\s*(?:[:?(\[]|\Z))"
    r"|how many|wie viele?|combien|cuánt[oa]s|quant[oiae]s?|hoeveel|ile|сколько|скільки|kaç)\b"
    r"|いくつ|何個|几个|多少|몇|の数(?=\s?[:：])",
    re.IGNORECASE,
)
"""Words that only a number answers."""

NUMBER_OF_ITEM: Final = re.compile(
    r"\bnumber of (?:your|the) (?:choice|option|selection|item)\b"
    r"|\b(?:choice|option|selection|item) number\b",
    re.IGNORECASE,
)
"""Words for the number of an item, which counts nothing."""

COUNTS: Final = re.compile(
    r"\b(?:number|how many|count|offset|port|puerto|порт|threads|cores|workers|age|days|seconds"
    r"|minutes|hours|bits|percent|anzahl|nombre de"
    r"|cuántos|quantos|quante|aantal|liczba|количество|кількість|sayısı|antal|počet)\b|size\b"
    r"|(?:größe|grootte|storlek|størrelse|stærð|suurus|koko|boyutu?|méret\w*)\b"
    r"|\b(?:taille|tamaño|tamanho|mida|dimensione|rozmiar|размер|розмір|velikost|veľkosť|dimensiunea)\b"
    r"|いくつ|多少|개수|サイズ|長さ|大小|尺寸"
    r"|ポート番号|端口|포트 ?번호|المنفذ",
    re.IGNORECASE,
)
"""Words for what is counted."""

UNITS: Final = re.compile(
    r"(?:in )?(?:days|hours|minutes|mins|seconds|secs?|weeks|months|years|ms|milliseconds"
    r"|bits|bytes|[kmgt]i?b|percent|%|tage|stunden|minuten|sekunden|jours|heures|secondes|días|horas|minutos"
    r"|segundos|giorni|ore|minuti|secondi|dias|dagen|uren|dni|godziny|дней|дни|часов|минут|секунд"
    r"|天|小时|分钟|秒|日|時間|分|일|시간|초)\Z",
    re.IGNORECASE,
)
"""Units in which a number is to be given."""

FILE_NAMES: Final = re.compile(
    r"\b(?:file ?names?|dateinamen?|nom d[eu] fichier|nombre d(?:e|el) (?:archivo|fichero)"
    r"|nome d[eo] (?:arquivo|ficheiro)|nome (?:del |di )?file|bestandsnaam|nazw[aę] pliku"
    r"|имя файла|ім['’]я файлу|dosya adı\w*|filnamn|filnavn|(?:název|jméno) souboru|názov súboru"
    r"|ime datoteke|failinim\w*|tiedoston? nim\w*|fájlnév\w*|(?:adat)?állomány nev\w*"
    r"|nume(?:le)?[- ]fişier(?:ul(?:ui)?)?|όνομα αρχείου|nom del? fitxer|tên tập tin)\b"
    r"|ファイル名|文件名|檔名|檔案名稱|파일 ?이름|اسم الملف"
    r"|\b(?:which|what) file\s?\?|^file to \w+(?=\s?:)",
    re.IGNORECASE,
)
"""Words for the name of a file."""

PATHS: Final = re.compile(
    r"\s*(?:\w+ ){0,3}(?:path(?:name)?|web ?root|document root|root path"
    r"|pfad|chemin|ruta|caminho|percorso|ścieżka|путь|шлях)\b[^?]*[:：]\s*\Z"
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
    r"\b(?:name[ds]?|hostname|version(?=\s*[:(\[]?\s*\Z)|description|comment|message|title|author|e-?mail|subject"
    r"|organi[sz]ation)\b",
    re.IGNORECASE,
)
"""Words for what a person makes up."""

FREE_ALONE: Final = re.compile(
    r"\s*(?:subject|title|description|comments?|message|summary)\s?:\s*\Z", re.IGNORECASE
)
"""Words for what a person makes up, also where nothing else stands beside them."""

CLOSED: Final = re.compile(
    r"\b(?:user|country|region|zone|format|type|mode|level|locale|encoding|language|device|disk)\b",
    re.IGNORECASE,
)
"""Words for what has to exist already, or is one of few, even if it has a name."""
