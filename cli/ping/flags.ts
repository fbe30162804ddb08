/** The flags of `rdma-rpc ping`. */
import { type Command, InvalidArgumentError, Option } from '#commander';
import { fabricNames } from '../../runtime/fabrics.ts';
import { type ConnectionFlags, withTimeout } from '../server/connection.ts';

export interface PingFlags extends ConnectionFlags {
  readonly count: number;
  readonly interval: number;
  readonly connections?: number;
  readonly concurrency: number;
  readonly fabric?: string;
  readonly device?: string;
}

const whole =
  (min: number, max: number) =>
  (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Give a number from ${min} to ${max}.`);
  };

export function withPingFlags(command: Command): Command {
  return withTimeout(command)
    .option('-c, --count <n>', 'number of round trips', whole(0, 1e9), 4)
    .option('-i, --interval <ms>', 'time between round trips', whole(0, 86_400_000), 1000)
    .option(
      '--connections <n>',
      'open this number of connections instead of making round trips',
      whole(1, 1e6),
    )
    .option(
      '--concurrency <n>',
      'with --connections: how many of them are open at the same time',
      whole(1, 1000),
      16,
    )
    .addOption(new Option('--fabric <name>', 'use only this fabric').choices([...fabricNames]))
    .option('--device <name>', 'RDMA device of this side; default: chosen by its address');
}
