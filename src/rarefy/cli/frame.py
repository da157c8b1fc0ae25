"""The frame of the command line: the app, and how a verb begins and ends.

Heavy imports happen inside the verbs, so that ``--help`` is instant.
"""

from __future__ import annotations

import errno
import functools
import math
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar, cast, get_type_hints

import typer

from rarefy.cli.folding import GroupedVerbs
from rarefy.cli.terminal import GuardedStream
from rarefy.core.errors import (
    VALUE,
    OutOfTime,
    RarefyError,
    Terminated,
    UsageError,
    bad_value,
    shortened,
)
from rarefy.core.place import Place, as_place
from rarefy.core.text import printable

if TYPE_CHECKING:
    import xarray as xr

    from rarefy.core.contracts import Experiment, Study, Verdict
    from rarefy.sweep.runner import Execution

    Judged = tuple[Study, str, xr.Dataset, list[Verdict]]

app = typer.Typer(
    cls=GroupedVerbs,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_debug = False
_typed: list[str] = []
from_file: dict[str, str] = {}
"""Parameters of the verb under way whose value a file of ``--config`` gave, and which."""
LONG = 120
"""Characters of a name that a complaint repeats."""
WRONG_NAMES = (errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES)

Verb = TypeVar("Verb", bound=Callable[..., None])


def main(arguments: list[str] | None = None) -> int:
    """Run a command line and give its exit code: 0 (done), 1 (a failure, or not as it should be), 2
    (wrong use), 3 (unfinished: the same command goes on) or 130 (stopped)."""
    global _debug
    _debug = False
    _typed[:] = sys.argv[1:] if arguments is None else arguments
    before, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    answering = threading.current_thread() is threading.main_thread()  # who may set handlers
    _make_safe()
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = GuardedStream(sys.stdout), GuardedStream(sys.stderr)
    if arguments is None:
        sys.meta_path.insert(0, _FirstWords())
    if answering and before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    # (processes of torchrun stop together or not at all: they end where they are)
    alone = os.environ.get("WORLD_SIZE", "").strip() in ("", "1")
    batch = answering and alone and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if batch:
        signal.signal(signal.SIGTERM, _terminated)
    try:
        code = app(args=list(_typed), prog_name="rarefy", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except RarefyError as error:  # of a file of options
        if _debug:
            raise
        return complain(str(error), error.exit_code)
    except Exception as error:
        if hasattr(error, "format_message"):  # the parser's own complaints, in our one-line form
            return complain(
                shortened(error.format_message(), VALUE), getattr(error, "exit_code", 2)
            )
        if type(error).__name__ == "Abort":  # Ctrl-C outside a run
            return complain("stopped", 130)
        raise
    except KeyboardInterrupt:  # before the verb was found
        return complain("stopped", 130)
    finally:
        sys.stdout, sys.stderr = streams
        if arguments is not None and answering and before is not None:
            # (a process that ends can be stopped again while it does)
            signal.signal(signal.SIGINT, before)
            if batch:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
            sys.unraisablehook = hook


class _FirstWords(MetaPathFinder):
    """Says what a person waits for when a verb begins to import what takes seconds. (A finder that
    finds nothing is asked before every import.)"""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in ("torch", "xarray"):
            sys.meta_path.remove(self)
            complain("loading torch takes some seconds", 0)


def _make_safe() -> None:
    """For odd surroundings: streams that were closed (``2>&-``), a terminal of no width."""
    while (free := os.open(os.devnull, os.O_RDWR)) < 3:
        pass  # a file of ours must not get the number of a closed stream, and its messages
    os.close(free)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    if not os.environ.get("COLUMNS", "80").strip("0"):
        del os.environ["COLUMNS"]


def _interrupted(number: int, frame: object) -> NoReturn:
    """The first time all ends in order; meanwhile the second says so. The third ends at once: what
    is finished lies safe at every moment."""
    signal.signal(signal.SIGINT, _again)
    sys.unraisablehook = lambda _: None  # what was cut off half-made would complain about that
    raise KeyboardInterrupt


def _terminated(number: int, frame: object) -> NoReturn:
    """Once: a batch system that has no more patience sends SIGKILL."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


def _again(number: int, frame: object) -> None:
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
    os.write(2, b"note: stopping, what is under way is being kept; once more ends it at once\n")


def complain(message: str, code: int) -> int:
    note = code in (0, OutOfTime.exit_code)
    print("note:" if note else "error:", " ".join(message.split()), file=sys.stderr)
    return code


def exit_on_error(verb: Verb) -> Verb:
    """Errors end a verb with one line and their exit code, never with a traceback."""

    @functools.wraps(verb)
    def wrapped(*args: Any, **options: Any) -> None:
        try:
            check_values(options)
            verb(*args, **options)
        except RarefyError as error:
            if _debug and not isinstance(error, OutOfTime):
                raise
            said = _as_typed(str(error), verb, options)
            raise typer.Exit(complain(said, error.exit_code)) from None
        except Terminated:  # outside a run
            message = "stopped by SIGTERM; the same command goes on"
            raise typer.Exit(complain(message, OutOfTime.exit_code)) from None
        except KeyboardInterrupt:  # outside a run: nothing was begun
            raise typer.Exit(complain("stopped", 130)) from None
        except BrokenPipeError:
            # the reader (head, less) has seen enough; nor must the last flush complain
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            if _debug:
                raise
            # a name that nothing can have, a folder nobody may read: the caller's, not ours
            what = printable(str(error.filename or type(error).__name__))[:LONG]
            code = 2 if error.errno in WRONG_NAMES else 1
            raise typer.Exit(complain(f"{what}: {error.strerror or error}", code)) from None
        except Exception as error:
            if _debug or isinstance(error, typer.Exit) or hasattr(error, "format_message"):
                raise
            message = f"{type(error).__name__}: {error} (rarefy --debug ... shows where)"
            raise typer.Exit(complain(message, 1)) from None

    return wrapped  # type: ignore[return-value]


def _as_typed(message: str, verb: Callable[..., None], options: dict[str, Any]) -> str:
    """A complaint about a parameter (``learning_rate=0: ...``), with the option that is typed
    (``--lr=0: ...``) and the file that it is from."""
    typed = {}
    for name, hint in get_type_hints(verb, include_extras=True).items():
        for info in getattr(hint, "__metadata__", ()):
            if isinstance(info, typer.models.OptionInfo):
                # (the first one that is declared stands where a default would)
                declared = [one for one in (info.default, *(info.param_decls or ())) if one]
                flags = [str(one).partition("/")[0] for one in declared if str(one)[0] == "-"]
                typed[name.strip("_")] = (flags or [f"--{name.replace('_', '-')}"])[0]
    name = re.match(r"\w*(?=[=:])|", message)[0]  # type: ignore[index]
    told = f"{typed.get(name, name)}{message.removeprefix(name)}"
    for given, value in options.items():
        # "unknown device 'tpu'", and of --set lr=fast "lr='fast': must be a number"
        words = [str(one) for one in (value if isinstance(value, list) else [value])]
        about = any(f"{one!r}" in message or one.partition("=")[0] == name for one in words)
        if (file := from_file.get(given.strip("_"))) and (about or given.strip("_") == name):
            return f"{told} (from {file})"
    return told


def check_values(options: dict[str, Any]) -> None:
    """What no option can mean, whichever it is."""
    for name, value in options.items():
        if isinstance(value, int) and abs(value) >= 2**63:
            raise bad_value(name, f"{str(value)[:20]}...", "is too large")
        if isinstance(value, float) and math.isnan(value):
            raise bad_value(name, value, "is not a number")
        if name == "max_seconds" and value is not None and not value > 0:
            raise bad_value(name, value, "must be more than 0")
        if value == "":  # (a shell's variable that is not set)
            raise bad_value(name, value, "is empty")
        for text in map(str, value if isinstance(value, list | tuple) else [value]):
            if re.search("[\0\n\r]", text):  # (commands that are printed would not be one line)
                raise bad_value(name, text, "has a zero byte or a line end in it")


def _version(asked: bool) -> None:
    if asked:
        from rarefy.cli.versions import versions

        typer.echo(versions())
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the versions."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", hidden=True)] = False,
) -> None:
    """Rare features: how networks learn or lose them, in theory and in your data.

    Start with [bold]rarefy demo[/], or [bold]rarefy checkup my_photos[/] on images of yours.

    Exit codes: 0 done; 1 a failure, or what was checked is not as it should be;
    2 wrong use; 3 unfinished (out of time, or a cluster, a store or another
    process is in the way): the same command goes on; 130 stopped.
    """
    global _debug
    _debug = debug
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def use_data_folder(folder: Path | None) -> None:
    """From here on image sets are looked for in ``folder``, in further processes too."""
    if folder is not None:
        os.environ["RAREFY_DATA"] = str(folder.expanduser().absolute())


def typed_again() -> str:
    """The command that goes on with what was begun: it must not begin by replacing that."""
    again = [argument for argument in _typed if argument != "--overwrite"]
    return f"rarefy {shlex.join(again)}"


def numbers(name: str, text: str) -> tuple[float, ...]:
    """``0.5,0.3`` as numbers."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{name}={text!r}: must be numbers, separated by commas") from None


def run_study(
    study: Experiment,
    scale: str,
    out: Place,
    device: str,
    dtype: str,
    overwrite: bool,
    max_seconds: float | None,
    jobs: int | None = None,
    models: Path | None = None,
    threads: int | None = None,
    progress: bool = True,
    cluster: str | None = None,
) -> Execution:
    """Run a study with a progress bar; messages repeat the command that was typed."""
    from rarefy.sweep.runner import execute

    return execute(
        study,
        scale,
        device,
        dtype,
        out,
        overwrite,
        max_seconds,
        progress=progress,
        go_on=typed_again(),
        jobs=jobs,
        models=models,
        threads=threads,
        cluster=cluster,
    )


def spell_saved(folder: Path | None, began: float, why: str = "") -> str:
    """How many networks a run wrote into a folder, in words behind its store; ``why`` there are
    none."""
    if folder is None:
        return ""
    # (file systems keep times less exactly than clocks do)
    written = sum(path.stat().st_mtime >= began - 2 for path in folder.glob("*.pt"))
    if not written:
        why = why or "all was trained before (--overwrite trains it again)"
        return f"; none saved in {folder}: {why}"
    return f"; {written} network{'s' * (written > 1)} saved in {folder}"


def results_in(named: Place | str) -> list[Place]:
    """The results in a folder; a store or a file stands for itself."""
    from rarefy.sweep.results import find_results

    path = as_place(named, "path")
    return (find_results(path) if path.is_dir() else []) or [path]


def judge_path(path: Place) -> Judged:
    """A file of results, or a finished store, with its verdicts."""
    from rarefy.studies.api import judge, open_store, read_results

    if path.suffix in (".json", ".parquet"):
        study, scale, dataset = read_results(path)
    else:
        store = open_store(path)
        done = store.done()
        if not done.all():
            raise UsageError(
                f"store {path} has {done.sum()} of {len(done)} cells; finish its run first"
            )
        study, scale, dataset = cast("Study", store.study), store.scale, store.read()
    return study, scale, dataset, judge(study, dataset, scale)


def print_(what: Any, fold: bool = True) -> None:
    """Drawn by rich; without ``fold`` a long line stays one."""
    from rich.console import Console

    console = Console(markup=False)
    with console.capture() as drawn:
        console.print(what, crop=False, soft_wrap=not fold)
    # written by us: rich would end the process itself when the reader is gone
    typer.echo(drawn.get(), nl=False)
