#!/usr/bin/env node
/**
 * `rdma-rpc`, the command. Exit code 0 means success. 1 means that the input is wrong or the output cannot be
 * written. 2 means that the command line is wrong.
 */
import { CommanderError } from '#commander';
import { newProgram } from './commands.ts';
import { endWithOutput, jsonText } from './output.ts';

endWithOutput('rdma-rpc');
try {
  await newProgram().parseAsync();
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  // Commander has already printed its message, on stderr. Help and version are not errors.
  process.exitCode = error.exitCode === 0 ? 0 : 2;
  if (error.exitCode !== 0 && process.argv.includes('--json'))
    console.log(jsonText({ error: { message: error.message.replace(/^error: /, '') } }));
}
