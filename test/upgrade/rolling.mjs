/**
 * Tests a rolling upgrade under load. Three servers behind the addresses of each client are replaced one
 * after the other, and then the clients. No call may fail. A rollback takes the same steps with the two
 * builds exchanged.
 */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { load, server } from './processes.mjs';

const servers = 3;
const clients = 2;
/** Number of reports of each client (ten a second) between one step and the next. */
const settled = 5;

const ways = {
  shm: { options: { fabric: 'shm' }, place: () => '127.0.0.1:0' },
  'shm-fd': {
    options: { fabric: 'shm-fd' },
    place: (index) => `unix:${join(tmpdir(), `upgrade-${process.pid}-${index}.sock`)}`,
  },
  tcp: { options: { fabric: 'tcp' }, place: () => '127.0.0.1:0' },
};

/** Waits until each client has made calls for a while. */
async function calling(loads) {
  for (let i = 0; i < settled; ++i) await Promise.all(loads.map((each) => each.line()));
}

async function roll({ options, place }, from, to, report) {
  const serving = await Promise.all(
    Array.from({ length: servers }, (_, i) => server(from, place(i), options)),
  );
  const addresses = serving.map(({ address }) => address);
  const calls = () => Promise.all(Array.from({ length: clients }, () => load(from, addresses, options)));
  let loads = await calls();
  const all = [...serving, ...loads];
  try {
    await calling(loads);
    for (const [index, old] of serving.entries()) {
      const { calls: served } = await old.stop();
      report(`server ${index + 1} was used before`, served > 0 ? undefined : 'no call came to it');
      serving[index] = await server(to, old.address, options);
      all.push(serving[index]);
      await calling(loads);
    }
    for (const [index, old] of loads.entries()) {
      const replacing = await load(to, addresses, options);
      all.push(replacing);
      loads = loads.with(index, replacing);
      const { calls: made, failures } = await old.stop();
      report(
        `client ${index + 1}: no call was lost`,
        failures.length === 0
          ? undefined
          : `${failures.length} of ${made}: ${failures.slice(0, 3).join('; ')}`,
      );
      await calling(loads);
    }
    for (const [index, each] of loads.entries()) {
      const { calls: made, failures } = await each.stop();
      const lost = `${failures.length} of ${made}: ${failures.slice(0, 3).join('; ')}`;
      report(`new client ${index + 1}: no call was lost`, failures.length === 0 ? undefined : lost);
    }
    for (const [index, each] of serving.entries()) {
      const { calls: served } = await each.stop();
      report(`new server ${index + 1} was used`, served > 0 ? undefined : 'no call came to it');
    }
  } finally {
    await Promise.all(all.map((each) => each.kill()));
  }
}

/** The arguments are those of matrix.mjs. */
export async function rolling({ today, before }, report) {
  for (const [name, way] of Object.entries(ways)) {
    for (const [what, from, to] of [
      ['upgrade', before, today],
      ['rollback', today, before],
    ])
      await roll(way, from, to, (check, why) => report(`${what} on ${name}: ${check}`, why)).catch((error) =>
        report(`${what} on ${name}`, error.message),
      );
  }
}
