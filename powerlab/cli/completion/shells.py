"""The completion table as a script of bash, zsh or fish.

All three do the same: find the place that the words so far lead to, take what the option before the cursor wants, else
the place's options or arguments, and replace the marks of the table by files or by what ``powerlab completion
--stored`` prints. References: bash(1) "Programmable Completion", zshcompsys(1), fish's complete(1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from powerlab.cli.completion.table import Place, Word

_BASH = """\
# bash completion of powerlab, written by `powerlab completion bash`
_powerlab() {
  local place=powerlab current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} word kind=arguments
  local places=$'@PLACES@'
  local -a candidates=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $places == *$'\\n'"$place $word"$'\\n'* ]] && place="$place $word"
  done
  [[ $current == -* ]] && kind=options
  case "$place $previous" in
@VALUES@
    *)
      case "$place $kind" in
@WORDS@
      esac
      ;;
  esac
  COMPREPLY=()
  for word in "${candidates[@]}"; do
    case $word in
      @files)
        compopt -o filenames 2>/dev/null
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current")
        ;;
      @*)
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(
          "${COMP_WORDS[0]}" completion --stored "${word#@}" 2>/dev/null | cut -f1 | grep -- "^$current"
        )
        ;;
      "$current"*) COMPREPLY+=("$word") ;;
    esac
  done
}
complete -F _powerlab powerlab
"""
_ZSH = """\
#compdef powerlab
# zsh completion of powerlab, written by `powerlab completion zsh`
_powerlab() {
  local place=powerlab previous=${words[CURRENT-1]} word kind=arguments
  local places=$'@PLACES@'
  local -a candidates described
  for word in "${(@)words[2,CURRENT-1]}"; do
    [[ $places == *$'\\n'"$place $word"$'\\n'* ]] && place="$place $word"
  done
  [[ ${words[CURRENT]} == -* ]] && kind=options
  case "$place $previous" in
@VALUES@
    *)
      case "$place $kind" in
@WORDS@
      esac
      ;;
  esac
  for word in "${(@)candidates}"; do
    case $word in
      @files) _files ;;
      @*)
        described+=("${(@f)$("${(Q)words[1]}" completion --stored "${word#@}" 2>/dev/null)}")
        ;;
      *) described+=("$word") ;;
    esac
  done
  described=("${(@)described:#}")
  described=("${(@)described//:/\\\\:}")
  described=("${(@)described/$'\\t'/:}")
  (( $#described )) && _describe -t values value described
}
if [[ ${funcstack[1]-} == _powerlab ]]; then _powerlab "$@"; else compdef _powerlab powerlab; fi
"""
_FISH = """\
# fish completion of powerlab, written by `powerlab completion fish`
function __powerlab_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l place powerlab
    set -l kind arguments
    set -l candidates
    for word in $words[2..-1]
        contains -- "$place $word" @PLACES@; and set place "$place $word"
    end
    string match -q -- '-*' $current; and set kind options
    switch "$place $words[-1]"
@VALUES@
        case '*'
            switch "$place $kind"
@WORDS@
            end
    end
    for word in $candidates
        switch $word
            case '@files'
                __fish_complete_path $current
            case '@*'
                $words[1] completion --stored (string sub -s 2 -- $word) 2>/dev/null
            case '*'
                printf '%s\\n' $word
        end
    end
end
complete -c powerlab -f -a '(__powerlab_candidates)'
"""


def _bash_list(words: Sequence[Word]) -> str:
    return f"candidates=({' '.join(_quoted(word) for word, _ in words)}) ;;"


def _zsh_list(words: Sequence[Word]) -> str:
    return f"candidates=({' '.join(_quoted(word, text) for word, text in words)}) ;;"


def _fish_list(words: Sequence[Word]) -> str:
    return f"set candidates {' '.join(_fish_quoted(word, text) for word, text in words)}".rstrip()


def _quoted(*parts: str) -> str:
    """Return a word of a POSIX shell, its parts separated by tabs."""
    text = "\t".join(part for part in parts if part).replace("\\", "\\\\").replace("'", "\\'").replace("\t", "\\t")
    return f"$'{text}'"


def _fish_quoted(*parts: str) -> str:
    cells = [part.replace("\\", "\\\\").replace("'", "\\'") for part in parts if part]
    return "\\t".join(f"'{cell}'" for cell in cells)


def _script(
    template: str,
    found: Mapping[str, Place],
    places: Callable[[Sequence[str]], str],
    case: Callable[[str, Sequence[Word]], str],
) -> str:
    values = [case(f"{path} {name}", words) for path, place in found.items() for name, words in place.values.items()]
    words = [
        case(f"{path} {kind}", some)
        for path, place in found.items()
        for kind, some in (("options", place.options), ("arguments", place.arguments or place.options))
    ]
    filled = template.replace("@PLACES@", places(list(found)))
    return filled.replace("@VALUES@", "\n".join(values)).replace("@WORDS@", "\n".join(words))


def _lines(paths: Sequence[str]) -> str:
    return "\\n" + "\\n".join(paths) + "\\n"


def bash(found: Mapping[str, Place]) -> str:
    """Return the script of bash, version 4 or newer."""
    return _script(_BASH, found, _lines, lambda key, words: f"    '{key}') {_bash_list(words)}")


def zsh(found: Mapping[str, Place]) -> str:
    """Return the script of zsh, to be found in ``fpath`` as ``_powerlab``, or to be sourced."""
    return _script(_ZSH, found, _lines, lambda key, words: f"    '{key}') {_zsh_list(words)}")


def fish(found: Mapping[str, Place]) -> str:
    """Return the script of fish, version 3 or newer."""
    return _script(
        _FISH,
        found,
        lambda paths: " ".join(_fish_quoted(path) for path in paths),
        lambda key, words: f"        case {_fish_quoted(key)}\n            {_fish_list(words)}",
    )


SHELLS: Mapping[str, Callable[[Mapping[str, Place]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
"""Every shell with what writes its script."""
