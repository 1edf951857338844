import type { Choices, CompletedCommand } from './completion-script.ts';

/** A script for fish 3 or later. */
export function fishCompletion(commands: readonly CompletedCommand[]): string {
  return `# Completion of tidegate for fish. Made by: tidegate completion fish

function __tidegate_begins
    test (count (commandline -opc)) -eq 1
end

function __tidegate_uses
    set -l words (commandline -opc)
    set -l command serve
    if set -q words[2]; and not string match -q -- '-*' $words[2]
        set command $words[2]
    end
    test "$command" = $argv[1]
end

complete -c tidegate -f
${commands.map(({ name, summary }) => `complete -c tidegate -n __tidegate_begins -a ${name} -d ${quote(summary)}`).join('\n')}
${commands.flatMap(formatCommand).join('\n')}
`;
}

function formatCommand({ name, options, first, others }: CompletedCommand): string[] {
  const uses = `complete -c tidegate -n '__tidegate_uses ${name}'`;
  const operands: Choices = {
    words: [...new Set([...first.words, ...others.words])],
    files: first.files || others.files,
  };
  return [
    ...options.map((option) => {
      const value = option.value === undefined ? '' : option.value.files ? ' -r -F' : ' -x';
      const words = (option.value?.words ?? []).join(' ');
      return `${uses} -l ${option.name}${value}${words === '' ? '' : ` -a ${quote(words)}`} -d ${quote(option.text)}`;
    }),
    ...(operands.files ? [`${uses} -F`] : []),
    ...(operands.words.length === 0 ? [] : [`${uses} -a ${quote(operands.words.join(' '))}`]),
  ];
}

function quote(text: string): string {
  return `'${text.replaceAll(/[\\']/g, String.raw`\$&`)}'`;
}
