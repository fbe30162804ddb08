/**
 * `rdma-rpc trace`: shows the last protocol events of a running process, or of a file that a process has
 * written. Exit code 1 means that no events can be read there, and 2 that the command line is wrong.
 */
import { existsSync } from 'node:fs';
import { type Command, InvalidArgumentError } from '#commander';
import { traceFile } from '../../runtime/boundary/traces/trace-file.ts';
import { readEvents } from '../../runtime/counters/events.ts';
import { eventRowBytes } from '../../runtime/native/event-row.ts';
import { jsonText, writeOutput } from '../output.ts';
import { sayError } from '../server/connection.ts';
import { pidOf } from '../top/target.ts';
import { eventsOfTrace, type Kind, kinds, type TraceEvent } from './events.ts';
import { readTrace, type Trace } from './file.ts';

/** Mode of written files: only the user who may read the process may read them. */
const mode = 0o600;

interface TraceFlags {
  readonly session?: number;
  readonly call?: string;
  readonly kind?: readonly Kind[];
  readonly last?: number;
  readonly chrome?: string;
  readonly save?: string;
  readonly json?: true;
}

function whole(text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Give a whole number.');
}

function callName(text: string): string {
  if (/^\d{1,4}\.\d{1,7}$/.test(text)) return text;
  throw new InvalidArgumentError('Give a call as it is shown, such as 12.3.');
}

/** Parses one or several kinds, separated by commas, and appends them to the given kinds. */
function kindsOf(text: string, before: readonly Kind[] = []): readonly Kind[] {
  const given = text.split(',').map((name) => kinds.find((kind) => kind === name));
  if (given.every((kind) => kind !== undefined)) return [...before, ...given];
  throw new InvalidArgumentError(`Kinds are ${kinds.join(', ')}.`);
}

export function addTraceCommand(program: Command): void {
  program
    .command('trace')
    .description('show the last protocol events of a process that uses rdma-rpc, or those of a trace file')
    .argument(
      '[target]',
      'PID, an address served on this machine, or a trace file; default: the only process',
    )
    .option('--session <number>', 'only events of this session', whole)
    .option('--call <slot.generation>', 'only events of this call', callName)
    .option('--kind <kind,…>', `only events of these kinds; may be repeated: ${kinds.join(', ')}`, kindsOf)
    .option('--last <count>', 'show only the last <count> events', whole)
    .option('--chrome <file>', 'write the events for ui.perfetto.dev and chrome://tracing, and print nothing')
    .option('--save <file>', 'write all events as a trace file, and print nothing')
    .option('--json', 'print JSON for programs; docs/schemas describes it')
    .action((target: string | undefined, flags: TraceFlags) => {
      return run(target, flags).catch((error: unknown) => {
        sayError(error, flags);
        process.exitCode = error instanceof TypeError ? 2 : 1;
      });
    });
}

/**
 * Returns the command without its arguments. Arguments may be confidential, and users send traces to other
 * people. Options of the runtime must come before the script.
 */
export function programOf(command: string): string {
  const words = command.split(' ');
  const script = words.findIndex((word, at) => at > 0 && !word.startsWith('-'));
  return words.slice(0, script < 0 ? 1 : script + 1).join(' ');
}

function traceOf(target: string | undefined): Trace {
  if (target !== undefined && !/^\d{1,9}$/.test(target) && existsSync(target)) return readTrace(target);
  if (target !== undefined && !/^\d{1,9}$|:/.test(target))
    throw new TypeError(
      `${target} is neither a file, a PID nor an address; give trace.rdma, 1234, host:port or unix:/path`,
    );
  const { pid, command, contexts } = readEvents(pidOf(target));
  const about = {
    pid,
    command: programOf(command),
    atNs: Number(process.hrtime.bigint()),
    wallMs: Date.now(),
    contexts: contexts.map(({ rows, ...context }) => ({ ...context, rows: rows.length / eventRowBytes })),
  };
  return { about, rows: contexts.map(({ rows }) => rows), missing: 0 };
}

function matching(events: readonly TraceEvent[], flags: TraceFlags): TraceEvent[] {
  const found = events.filter(
    (event) =>
      (flags.session === undefined || event.session === flags.session) &&
      (flags.call === undefined || event.call === flags.call) &&
      (flags.kind === undefined || flags.kind.includes(event.kind)),
  );
  return flags.last === undefined ? found : found.slice(Math.max(0, found.length - flags.last));
}

async function run(target: string | undefined, flags: TraceFlags): Promise<void> {
  const trace = traceOf(target);
  const { about, missing } = trace;
  if (missing > 0)
    console.error(
      `${target} is cut off: ${missing} ${missing === 1 ? 'event is' : 'events are'} missing at its end, as when a process dies while it writes its trace; the events before that are used`,
    );
  if (flags.save !== undefined) writeOutput(flags.save, traceFile(about, trace.rows), { mode });
  const events = matching(eventsOfTrace(trace), flags);
  if (flags.chrome !== undefined) {
    const { chromeTrace } = await import('./chrome.ts');
    writeOutput(flags.chrome, JSON.stringify(chromeTrace(about, events)), { mode });
  }
  if (flags.json === true) {
    const { contexts, ...whose } = about;
    const known = contexts.map(({ fabric, device, sessions }) => ({ fabric, device, sessions }));
    console.log(jsonText({ ...whose, contexts: known, events }));
  } else if (flags.chrome === undefined && flags.save === undefined) {
    const { textOf } = await import('./text.ts');
    for (const line of textOf(about, events)) console.log(line);
  }
}
