/** The flags of `rdma-rpc bench`, named as in ghz where it has them, and the plan that results from them. */
import { type Command, InvalidArgumentError, Option } from '#commander';
import type { MetadataValue } from '../../runtime/core/metadata.ts';
import { fabricNames } from '../../runtime/fabrics.ts';
import { metadataPair } from '../server/metadata-flag.ts';
import type { DeclarationFlags } from '../server/schema-flags.ts';
import type { DataFlags } from './data.ts';
import type { Plan } from './load.ts';
import { type Rates, Schedule } from './schedule.ts';
import type { TargetOptions } from './target.ts';

export interface BenchFlags extends DeclarationFlags, DataFlags {
  readonly concurrency: number;
  readonly total?: number;
  readonly duration?: number;
  readonly rps?: number;
  readonly loadSchedule?: Rates['kind'];
  readonly loadStart?: number;
  readonly loadStep?: number;
  readonly loadEnd?: number;
  readonly loadStepDuration?: number;
  readonly loadMaxDuration?: number;
  readonly connections: number;
  readonly skipFirst: number;
  readonly metadata: [string, MetadataValue][];
  readonly fabric?: TargetOptions['fabric'];
  readonly grpc?: true;
  readonly csv?: string;
  readonly html?: string;
  readonly hdrLog?: string;
  readonly allowUnknownFields?: true;
  readonly progress: boolean;
}

/** The default when neither a number of calls nor a duration is given, as in ghz. */
const totalDefault = 200;
const forever = Number.POSITIVE_INFINITY;

const whole =
  (min: number, max: number, what: string) =>
  (text: string): number => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Give ${what} from ${min} to ${max}.`);
  };

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const durationMaxMs = 24 * 3_600_000;

function duration(text: string): number {
  const [, value = '', unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? [];
  const ms = Number(value) * (units[unit] ?? 0);
  if (ms >= 1 && ms <= durationMaxMs) return ms;
  throw new InvalidArgumentError('Give a time such as 500ms, 10s, 2m or 1h, at most 24h.');
}

const rate = whole(1, 10_000_000, 'calls per second');
const calls = whole(1, 1_000_000_000, 'calls');

export function withBenchFlags(command: Command): Command {
  return command
    .option(
      '-c, --concurrency <n>',
      'number of workers, each of which makes one call at a time',
      whole(1, 100_000, 'calls'),
      50,
    )
    .option(
      '-n, --total <n>',
      `number of calls, unless -z is given; default: ${totalDefault}, or no limit when a schedule ends by itself`,
      calls,
    )
    .option('-z, --duration <time>', 'how long the workers start new calls, such as 10s or 2m', duration)
    .option(
      '-r, --rps <n>',
      'start this number of calls per second, even when earlier calls are slow (open loop)',
      rate,
    )
    .addOption(
      new Option(
        '--load-schedule <kind>',
        'open loop whose rate stays (const), changes in steps, or changes steadily (line)',
      ).choices(['const', 'step', 'line']),
    )
    .option('--load-start <n>', 'with step or line: calls per second at the beginning', rate)
    .option(
      '--load-step <n>',
      'by how many calls per second the rate changes, in each step or in each second of a line',
      whole(-10_000_000, 10_000_000, 'calls per second'),
    )
    .option('--load-end <n>', 'calls per second at which the rate stops changing', rate)
    .option('--load-step-duration <time>', 'duration of a step', duration)
    .option('--load-max-duration <time>', 'time after which the rate stays the same', duration)
    .option(
      '--connections <n>',
      'number of connections; the workers share them evenly',
      whole(1, 1000, 'connections'),
      1,
    )
    .option(
      '--skip-first <n>',
      'number of calls at the beginning that the report leaves out (warm-up)',
      whole(0, 1_000_000_000, 'calls'),
      0,
    )
    .option(
      '-d, --data <json>',
      'request as JSON, or an array of requests: each call sends the next one, and a call with a stream of requests sends all; @ reads stdin',
      '{}',
    )
    .option('-D, --data-file <file>', 'read the request of -d from a file; - is stdin')
    .option('-m, --metadata <key=value>', 'metadata to send; may be repeated', metadataPair, [])
    .addOption(
      new Option('--fabric <name>', 'fabric to use; default: chosen automatically').choices([...fabricNames]),
    )
    .option('--grpc', 'the server is a gRPC server; needs @grpc/grpc-js')
    .option('--csv <file>', 'write every call as a line of CSV')
    .option('--html <file>', 'write the report as an HTML page')
    .option('--hdr-log <file>', 'write latencies as a log of HdrHistogram')
    .option('--allow-unknown-fields', 'ignore members of the request that are not fields')
    .option(
      '--no-progress',
      'do not show progress on stderr (without this flag it is shown if stderr is a terminal)',
    );
}

/** Checks flags that are meaningful only together with other flags. Returns a sentence about the mistake. */
function misfit(flags: BenchFlags): string | undefined {
  const { loadSchedule, rps, grpc, fabric } = flags;
  const loads = ['loadStart', 'loadStep', 'loadEnd', 'loadStepDuration', 'loadMaxDuration'] as const;
  const flagOf = (name: string): string =>
    `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const given = loads.find((name) => flags[name] !== undefined);
  if (loadSchedule === undefined && given !== undefined)
    return `${flagOf(given)} needs --load-schedule step or line`;
  if (loadSchedule === 'const' && rps === undefined) return '--load-schedule const needs --rps';
  if (loadSchedule === 'const' && given !== undefined)
    return `${flagOf(given)} has no meaning with --load-schedule const`;
  if (loadSchedule === 'step' || loadSchedule === 'line') {
    if (rps !== undefined)
      return `--rps has no meaning with --load-schedule ${loadSchedule}: it is --load-start`;
    const needed = [
      'loadStart',
      'loadStep',
      ...(loadSchedule === 'step' ? ['loadStepDuration'] : []),
    ] as const;
    const missing = needed.find((name) => flags[name as keyof BenchFlags] === undefined);
    if (missing !== undefined) return `--load-schedule ${loadSchedule} needs ${flagOf(missing)}`;
  }
  if (grpc === true && fabric !== undefined) return '--fabric has no meaning with --grpc';
  if (grpc === true && (flags.pskFile ?? flags.require) !== undefined)
    return '--psk-file and --require have no meaning with --grpc';
  if (grpc === true && flags.credential.length > 0)
    return '--credential has no meaning with --grpc: --metadata is sent with each call';
  return undefined;
}

/** Throws an Error with a sentence for flags that contradict each other. */
export function planOf(flags: BenchFlags): Plan {
  const wrong = misfit(flags);
  if (wrong !== undefined) throw new Error(wrong);
  const { concurrency, rps, loadSchedule, timeout } = flags;
  const open = rps !== undefined || loadSchedule !== undefined;
  const schedule = open
    ? new Schedule({
        kind: loadSchedule ?? 'const',
        start: rps ?? flags.loadStart!,
        step: flags.loadStep ?? 0,
        end: flags.loadEnd,
        stepDurationMs: flags.loadStepDuration ?? 0,
        maxDurationMs: flags.loadMaxDuration ?? forever,
      })
    : undefined;
  const length = schedule?.lengthMs ?? forever;
  // A schedule runs for its whole length. A schedule without an end runs like a load without a schedule.
  const byDefault =
    flags.total === undefined && length !== forever ? Math.min(length, durationMaxMs) : forever;
  const durationMs = flags.duration ?? byDefault;
  // If both are given, the duration is used, as in ghz.
  const total = durationMs === forever ? (flags.total ?? totalDefault) : forever;
  return { concurrency, total, durationMs, schedule, graceMs: timeout };
}
