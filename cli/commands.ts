/**
 * All commands of `rdma-rpc`, with their options. main.ts runs the one that the command line names, and tests
 * parse the command lines of the documents with them.
 */
import { Command } from '#commander';
import { addBenchCommand } from './bench/bench.ts';
import { addBuildAddonCommand } from './build-addon.ts';
import { addExplainCommand } from './explain/explain.ts';
import { addGenCommand } from './gen.ts';
import { addDevicesCommand } from './machine/devices.ts';
import { addDoctorCommand } from './machine/doctor.ts';
import { addEventsCommand } from './machine/events.ts';
import { addInfoCommand } from './machine/info.ts';
import { addLinksCommand } from './machine/links.ts';
import { addMigrateCommand } from './migrate/migrate.ts';
import { addPerfCommand } from './perf/perf.ts';
import { addPingCommand } from './ping/ping.ts';
import { addScaffoldCommand } from './scaffold.ts';
import { addCallCommand } from './server/call.ts';
import { addHealthCommand } from './server/health.ts';
import { addDescribeCommand, addListCommand } from './server/schema-commands.ts';
import { addTopCommand } from './top/top.ts';
import { addTraceCommand } from './trace/trace.ts';
import { addTunnelCommand } from './tunnel/tunnel.ts';
import { version } from './version.ts';

/** Makes the program. A wrong command line makes its parser throw a CommanderError. */
export function newProgram(): Command {
  const program = new Command('rdma-rpc')
    .description('tools for RPC over RDMA with Node.js')
    .version(version())
    .showHelpAfterError('(rdma-rpc --help lists the commands)')
    .exitOverride();

  addGenCommand(program);
  addScaffoldCommand(program);
  addMigrateCommand(program);
  addInfoCommand(program);
  addDoctorCommand(program);
  addDevicesCommand(program);
  addLinksCommand(program);
  addEventsCommand(program);
  addExplainCommand(program);
  addBuildAddonCommand(program);
  addHealthCommand(program);
  addListCommand(program);
  addDescribeCommand(program);
  addCallCommand(program);
  addBenchCommand(program);
  addPerfCommand(program);
  addPingCommand(program);
  addTopCommand(program);
  addTraceCommand(program);
  addTunnelCommand(program);

  for (const command of program.commands) {
    command.showHelpAfterError(`(rdma-rpc ${command.name()} --help lists its options)`);
    for (const option of command.options)
      if (Array.isArray(option.defaultValue)) option.defaultValueDescription ??= 'none';
  }
  return program;
}
