/** The commands that print a text of this installation. */
import type { ConfigEnvironment } from '../config/load/substitute.ts';
import type { CliCommand } from './parse-arguments.ts';

type TextCommand = Extract<
  CliCommand,
  { kind: 'schema' | 'simulate-list' | 'completion' | 'man' | 'help' | 'version' }
>;

/** Loads only what the command needs. */
export async function commandText(
  command: TextCommand,
  version: string,
  environment: ConfigEnvironment,
): Promise<string> {
  switch (command.kind) {
    case 'schema': {
      const { configJsonSchema } = await import('../config/schema/json-schema.ts');
      return `${JSON.stringify(configJsonSchema(), null, 2)}\n`;
    }
    case 'simulate-list': {
      const { listScenarios } = await import('./bundled-scenarios.ts');
      return listScenarios(environment);
    }
    case 'completion': {
      const { completionScript } = await import('./help/completion-script.ts');
      return completionScript(command.shell);
    }
    case 'man': {
      const { manPage } = await import('./help/man-page.ts');
      return manPage(version);
    }
    case 'help': {
      const { helpText } = await import('./help/help-text.ts');
      return helpText(command.topic);
    }
    case 'version':
      return `${version}\n`;
  }
}
