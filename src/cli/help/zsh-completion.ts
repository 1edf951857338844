import type { Choices, CompletedCommand } from './completion-script.ts';

/** A script for the completion system of zsh. */
export function zshCompletion(commands: readonly CompletedCommand[]): string {
  return `#compdef tidegate
# Completion of tidegate for zsh. Made by: tidegate completion zsh

_tidegate() {
  local -a commands=(
${commands.map(({ name, summary }) => `    ${quote(`${name}:${escape(summary)}`)}`).join('\n')}
  )
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe -t commands command commands
    return
  fi
  local command=serve
  if [[ $words[2] != -* ]]; then
    command=$words[2]
    shift words
    (( CURRENT -= 1 ))
  fi
  case $command in
${commands.map(formatCommand).join('\n')}
  esac
}

if [[ $funcstack[1] == _tidegate ]]; then
  _tidegate "$@"
else
  compdef _tidegate tidegate
fi
`;
}

function formatCommand({ name, options, first, others }: CompletedCommand): string {
  const specs = [
    ...options.map(({ name: flag, text, value }) =>
      value === undefined ? `--${flag}[${escape(text)}]` : `--${flag}=[${escape(text)}]:${flag}:${action(value)}`,
    ),
    ...(isEmpty(first) ? [] : [`1: :${action(first)}`]),
    ...(isEmpty(others) ? [] : [`*: :${action(others)}`]),
  ];
  return `    ${name}) _arguments ${specs.map(quote).join(' ')} ;;`;
}

/** An action of `_arguments`: what it offers for a word; a space for nothing. */
function action({ words, files }: Choices): string {
  if (words.length === 0) return files ? '_files' : ' ';
  return files ? `{compadd -- ${words.join(' ')}; _files}` : `(${words.join(' ')})`;
}

function isEmpty({ words, files }: Choices): boolean {
  return words.length === 0 && !files;
}

function escape(text: string): string {
  return text.replaceAll(/[\\:[\]]/g, String.raw`\$&`);
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
