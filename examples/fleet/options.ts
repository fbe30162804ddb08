/** The arguments of main.ts. */
import { parseArgs } from 'node:util';

export const usage = `node dist/examples/fleet/main.js [options]

  --servers N   servers of the fleet (3)
  --events N    how often one is rolled, killed or cut off (20)
  --clients N   clients of the gateway, each with one call at a time (16)
  --cut MS      how long a server is cut off (3000)
  --page FILE   the page that is written at the end (fleet.html)
  --file        a file instead of etcd
  --plain       no network namespaces`;

export interface FleetOptions {
  readonly servers: number;
  readonly events: number;
  readonly clients: number;
  readonly cut: number;
  readonly page: string;
  readonly file: boolean;
  readonly plain: boolean;
}

const ranges = { servers: [1, 64], events: [0, 100_000], clients: [1, 1024], cut: [1, 60_000] } as const;

/** Throws for an argument that it does not know, and for a number out of its range. */
export function optionsOf(args: readonly string[]): FleetOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      servers: { type: 'string', default: '3' },
      events: { type: 'string', default: '20' },
      clients: { type: 'string', default: '16' },
      cut: { type: 'string', default: '3000' },
      page: { type: 'string', default: 'fleet.html' },
      file: { type: 'boolean', default: false },
      plain: { type: 'boolean', default: false },
    },
  });
  const number = (name: keyof typeof ranges): number => {
    const [min, max] = ranges[name];
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < min || value > max)
      throw new Error(`--${name} ${values[name]}: give a whole number from ${min} to ${max}`);
    return value;
  };
  const { page, file, plain } = values;
  return {
    servers: number('servers'),
    events: number('events'),
    clients: number('clients'),
    cut: number('cut'),
    page,
    file,
    plain,
  };
}
