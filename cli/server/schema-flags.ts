/**
 * Flags of the commands that need a server's declarations. The schemas come from the server, or from files
 * without a server.
 */
import type { Command } from '#commander';
import { type ConnectionFlags, sayError, withServer, withTimeout } from './connection.ts';
import { openSchema } from './schema/open-schema.ts';
import { fromFiles, type Schema, type SchemaFlags } from './schema/schema.ts';

export type DeclarationFlags = ConnectionFlags & SchemaFlags;

const collect = (value: string, previous: readonly string[]): string[] => [...previous, value];

export function withSchemaFlags(command: Command): Command {
  return withTimeout(
    command
      .option(
        '--proto <file>',
        '.proto file to read instead of asking the server; may be repeated',
        collect,
        [],
      )
      .option(
        '-I, --include <dir>',
        'folder in which imports of --proto files are looked up; may be repeated',
        collect,
        [],
      )
      .option(
        '--protoset <file>',
        'descriptor set (protoc, buf build) to read instead of asking the server; may be repeated',
        collect,
        [],
      ),
  );
}

/** Addresses contain a colon, and names of protobuf do not. */
const isAddress = (text: string | undefined): boolean => text?.includes(':') === true;

/**
 * Runs `action` with the schema and the names of the command line, and sets the exit code. If there is an
 * address, it is the first argument. When files are given it may be omitted, and then no connection is made.
 */
export async function withSchema(
  words: readonly string[],
  flags: DeclarationFlags,
  action: (schema: Schema, names: readonly string[]) => Promise<void>,
): Promise<void> {
  const [first, ...others] = words;
  if (fromFiles(flags)) {
    try {
      const schema = await openSchema(flags, () => {
        throw new TypeError('the declarations come from files, so no channel is opened');
      });
      await action(schema, isAddress(first) ? others : words);
    } catch (error) {
      sayError(error, flags);
      process.exitCode = 1;
    }
    return;
  }
  if (first === undefined) {
    sayError(new Error('give the address of a server, or --proto or --protoset'), flags);
    process.exitCode = 2;
    return;
  }
  await withServer(first, flags, async (channel) => {
    await action(await openSchema(flags, () => channel), others);
    return 0;
  });
}
