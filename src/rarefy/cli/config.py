"""``--config FILE``: the options of a verb in a TOML file, taken and written back.

``configured`` makes a function a verb that takes such a file; ``keep_options`` writes the options
of the call beside its output. All is read off the verb's own options: no verb lists them again.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any, get_args, get_type_hints

import typer

from rarefy import __version__
from rarefy.cli.folding import FoldedVerb, show_whole_help
from rarefy.cli.frame import Verb, app, check_values, complain, exit_on_error, from_file
from rarefy.core.errors import RarefyError, UsageError, bad_value, shortened
from rarefy.core.place import Place, Remote
from rarefy.core.text import as_argument, one_line
from rarefy.core.writing import is_intact, record_of, write_output

COMMAND = "command"
"""The key that says which verb a file is for."""
TYPED_ONLY = ("config", "help_all", "overwrite")
"""A file must not replace what was written before, each time that it is used."""
MOST_BYTES, MOST_DOTS = 1_000_000, 100
"""Of a file, and outside of texts and comments in a line of it: the reader takes time by the square
of the parts of a dotted name."""
_TEXTS = re.compile(rb'"(?:\\.|[^"\\\n])*"?|\'[^\'\n]*\'?|#.*')
KINDS: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "a text in quotes"),
    Path: ((str,), "a path in quotes"),
    list[str]: ((list,), 'a list of texts, ["a", "b"]'),
}

_call: typer.Context | None = None


def configured(verb: Verb) -> Verb:
    """Make ``verb`` a command of the app with ``--config`` and ``--help-all``."""
    ended = exit_on_error(verb)

    @functools.wraps(verb)
    def called(context: typer.Context, **options: Any) -> None:
        global _call
        _call = context
        file = options.pop("config")
        del options["help_all"]
        taken = [name for name in options if _source(context, name) == "DEFAULT_MAP"]
        from_file.update({name.strip("_"): str(file) for name in taken})
        try:
            ended(**options)
        finally:
            _call = None
            from_file.clear()

    # (typer reads the options off the signature)
    added = {
        "context": (typer.Context, inspect.Parameter.empty),
        "config": (_Config, None),
        "help_all": (_HelpAll, False),
    }
    hints = get_type_hints(verb, include_extras=True)
    own = inspect.signature(verb).parameters.values()
    called.__annotations__ = hints | {name: hint for name, (hint, _) in added.items()}
    called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint
            )
            for name, (hint, default) in (
                *((one.name, (hints[one.name], one.default)) for one in own),
                *added.items(),
            )
        ]
    )
    app.command(cls=FoldedVerb)(called)
    return verb


def _take(context: typer.Context, path: Path | None) -> Path | None:
    """The callback of ``--config``, before the other options are looked at: they win."""
    if path is not None and not context.resilient_parsing:
        try:
            context.default_map = _checked(context, path)
        except UsageError:
            raise
        except (ValueError, RecursionError):  # (of the reader, or of what would show a value)
            why = "holds a number of thousands of digits, or is nested too deeply"
            raise bad_value("--config", str(path), why) from None
    return path


_Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        is_eager=True,
        callback=_take,
        help="Read options from a file (docs/config.md).",
    ),
]
_HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all", is_eager=True, callback=show_whole_help, help="Show all options and exit."
    ),
]


# Reading


def _checked(context: typer.Context, path: Path) -> dict[str, Any]:
    """The values of a file, by the names of the verb's parameters."""
    given = _read(path)
    verb = str(context.command.name)
    said = given.pop(COMMAND, verb)
    if said != verb:
        words = f"this file is for rarefy {said}, and rarefy {verb} was called"
        raise _wrong(path, COMMAND, said, words)
    parameters = _parameters(context.command)
    kinds = _kinds(context.command)
    found = {}
    for key, value in given.items():
        if key not in parameters:
            raise _wrong(path, key, value, _unknown(context, key))
        types, wanted = KINDS[kinds[parameters[key].name]]
        fits = isinstance(value, types) and (bool in types or not isinstance(value, bool))
        if isinstance(value, list):
            fits = fits and all(isinstance(one, str) for one in value)
        if not fits:
            raise _wrong(path, key, value, f"must be {wanted}")
        try:
            check_values({key: value})
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None
        found[parameters[key].name] = value
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise bad_value("--config", str(path), "must be a file, not a folder or a pipe")
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise bad_value("--config", str(path), f"cannot be read: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise bad_value("--config", str(path), "is no file of options: more than a megabyte")
    if any(line.count(b".") > MOST_DOTS for line in _TEXTS.sub(b"", content).split(b"\n")):
        raise bad_value("--config", str(path), f"has more than {MOST_DOTS} dots in a line")
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise bad_value("--config", str(path), f"is no text in UTF-8 (at line {line})") from None
    except tomllib.TOMLDecodeError as error:
        last = len(content.splitlines())
        why = str(error).replace("at end of document", f"at line {last}, the last")
        raise bad_value("--config", str(path), f"is not TOML: {why}") from None


def _wrong(path: Path, key: str, value: object, why: str) -> UsageError:
    shown = shortened(json.dumps(value, default=str), 100)
    return UsageError(f"{path}: {shortened(key, 100)} = {shown}: {why}")


def _unknown(context: typer.Context, key: str) -> str:
    """Why a key is not taken, and which one may be meant."""
    verb, known = context.command.name, _parameters(context.command)
    if key.replace("-", "_") in TYPED_ONLY:
        return f"--{key} is typed, not taken from a file"
    near = get_close_matches(key, known, n=1)
    if near:
        return f"rarefy {verb} has no such option; did you mean {near[0]}?"
    others = getattr(context.parent and context.parent.command, "commands", {})
    having = [name for name, one in others.items() if key in _parameters(one)]
    if having:
        return f"an option of rarefy {', '.join(having)}, not of rarefy {verb}"
    return f"rarefy {verb} has no such option (known: {', '.join(known)})"


def _parameters(command: Any) -> dict[str, Any]:
    """What can stand in a file: an option by what is typed, an argument by its name."""
    found = {}
    for one in command.params:
        if one.name not in TYPED_ONLY and not getattr(one, "hidden", False):
            flags = [flag[2:] for flag in one.opts if flag.startswith("--")]
            found[flags[0] if flags else one.name] = one
    return found


def _kinds(command: Any) -> dict[str, Any]:
    """``int`` for a parameter that is ``int | None``."""
    kinds = {}
    for name, hint in get_type_hints(command.callback).items():
        rest = [one for one in get_args(hint) if one is not type(None)]
        kinds[name] = rest[0] if type(None) in get_args(hint) else hint
    return kinds


def _source(context: typer.Context, name: str) -> str:
    source = context.get_parameter_source(name)
    return "" if source is None else source.name


# Writing


def options_file(output: Path) -> Path:
    """Where the options of a call lie: beside its output (never inside: a store and a cleaned set
    hold nothing else)."""
    if output.name in ("", ".."):
        return output / "run.toml"
    return output.with_name(f"{output.name}.toml")


def keep_options(output: Place) -> None:
    """Write the options of this call beside its output. What a person has written or changed there
    stays; at an address there is none."""
    if _call is None or isinstance(output, Remote):
        return
    path, read = options_file(output), _call.params["config"]
    try:
        is_read = read is not None and path.exists() and path.samefile(read)
        overwrite = bool(_call.params.get("overwrite")) and not is_read
        text = "\n".join(_lines(_call, path)) + "\n"
        if not os.path.lexists(path) or is_intact(path) or (overwrite and record_of(path)):
            write_output(path, text, "options", overwrite)
        elif not _says(_call, path):
            complain(f"{path} is not as rarefy wrote it and stays; it has other options", 0)
    except (RarefyError, OSError, ValueError, RecursionError) as error:
        complain(f"the options of this call are not kept: {error}", 0)


def _values(context: typer.Context) -> dict[str, Any]:
    """What holds in this call; nothing for an option that was not given and has no default."""
    known = _parameters(context.command)
    return _plain_values({key: context.params[one.name] for key, one in known.items()})


def _says(context: typer.Context, path: Path) -> bool:
    """Whether somebody's file has the options of this call."""
    usual = {key: one.default for key, one in _parameters(context.command).items()}
    said = {key: one for key, one in _read(path).items() if key != COMMAND}
    return _plain_values(usual | said) == _values(context)


def _plain_values(values: dict[str, Any]) -> dict[str, Any]:
    """As TOML has them; a repeated option that was never given is an empty list."""
    plain = {}
    for key, value in values.items():
        if isinstance(value, list | tuple):
            value = [str(one) for one in value] or None
        if value is not None:
            plain[key] = str(value) if isinstance(value, Path) else value
    return plain


def _lines(context: typer.Context, path: Path) -> Iterator[str]:
    from rarefy.core.tables import without_marks

    verb, values = context.command.name, _values(context)
    yield f"# Options of rarefy {verb}, written by rarefy {__version__}. To do the same again:"
    yield f"#   rarefy {verb} --config {one_line(as_argument(path))}"
    yield "# What is typed wins over what stands here. Paths are as seen from the folder in which"
    yield "# the command is typed. An option behind a # was not given."
    yield ""
    yield f"{COMMAND} = {_toml(verb)}"
    panel = ""
    parameters = _parameters(context.command)
    heading = {key: getattr(one, "rich_help_panel", None) or "" for key, one in parameters.items()}
    for key in sorted(parameters, key=lambda key: list(heading.values()).index(heading[key])):
        if heading[key] != panel:
            panel = heading[key]
            yield f"\n# ---- {panel or 'General'} ----"
        yield ""
        yield from (f"# {line}" for line in wrap(without_marks(parameters[key].help or ""), 94))
        yield f"{key} = {_toml(values[key])}" if key in values else f"# {key} ="


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float):
        return repr(value)
    # JSON's texts, whole numbers and truths are TOML's but for one character
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
