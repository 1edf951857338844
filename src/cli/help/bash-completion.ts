import type { Choices, CompletedCommand } from './completion-script.ts';

/** A script for bash 4 or later, without the functions of the package bash-completion. */
export function bashCompletion(commands: readonly CompletedCommand[]): string {
  return `# Completion of tidegate for bash. Made by: tidegate completion bash

_tidegate_offer() {
  COMPREPLY+=($(compgen -W "$1" -- "$current"))
}

_tidegate_files() {
  compopt -o filenames
  local IFS=$'\\n'
  COMPREPLY+=($(compgen -f -- "$current"))
}

_tidegate() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
  local command=serve options='' valued='' operands=0 is_part='' word
  COMPREPLY=()
  # bash separates "--config=FILE" into three words.
  [[ $previous == '=' ]] && previous=\${COMP_WORDS[COMP_CWORD-2]}
  [[ $current == '=' ]] && current=''
  if (( COMP_CWORD == 1 )) && [[ $current != -* ]]; then
    _tidegate_offer '${commands.map(({ name }) => name).join(' ')}'
    return
  fi
  [[ \${COMP_WORDS[1]} != -* ]] && command=\${COMP_WORDS[1]}
  case $command:$previous in
${commands.flatMap(formatValues).join('\n')}
  esac
  case $command in
${commands.map(formatOptions).join('\n')}
    *) return ;;
  esac
  if [[ $current == -* ]]; then
    _tidegate_offer "$options"
    return
  fi
  for word in "\${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
    # An address is separated at its colons: what follows one is part of the word before.
    if [[ $word == [:=] ]]; then is_part=1
    elif [[ -n $is_part ]]; then is_part=''
    elif [[ $word != -* ]]; then operands=$((operands + 1))
    elif [[ " $valued " == *" $word "* ]]; then is_part=1
    fi
  done
  (( operands > 1 )) && operands=1
  case $command:$operands in
${commands.flatMap(formatOperands).join('\n')}
  esac
}

complete -F _tidegate tidegate
`;
}

/** The values of options. An option with a value that no shell can know ends the completion. */
function formatValues({ name, options }: CompletedCommand): string[] {
  return options.flatMap((option) =>
    option.value === undefined ? [] : [`    ${name}:--${option.name}) ${offer(option.value)}return ;;`],
  );
}

function formatOptions({ name, options }: CompletedCommand): string {
  const flags = (list: CompletedCommand['options']): string => list.map((option) => `--${option.name}`).join(' ');
  const valued = options.filter(({ value }) => value !== undefined);
  return `    ${name}) options='${flags(options)}' valued='${flags(valued)}' ;;`;
}

function formatOperands({ name, first, others }: CompletedCommand): string[] {
  return [first, others].flatMap((choices, i) => {
    const text = offer(choices);
    return text === '' ? [] : [`    ${name}:${i}) ${text};;`];
  });
}

function offer({ words, files }: Choices): string {
  return `${words.length === 0 ? '' : `_tidegate_offer '${words.join(' ')}'; `}${files ? '_tidegate_files; ' : ''}`;
}
