/**
 * Makes every kind of call between the two builds, in both directions, on each fabric that needs no device:
 * an older client of a newer server, and a newer client of an older server.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../scripts/command.mjs';
import { checked, load, server } from './processes.mjs';

const ours = (path) => import(join(root, 'dist/runtime', path));
const psk = { upgrade: '1f'.repeat(32) };
const sealed = { require: 'sealed' };
const at = { port: () => '127.0.0.1:0', unix: (name) => `unix:${join(tmpdir(), name)}` };

/**
 * `fabric` and `security` are the values that the session must have. `options` are the options of both sides.
 */
const ways = {
  'shm by host:port': { place: 'port', fabric: 'shm', options: { fabric: 'shm' } },
  'shm by a unix socket': { place: 'unix', fabric: 'shm', options: { fabric: 'shm' }, security: 'bound' },
  'shm-fd': { place: 'unix', fabric: 'shm-fd', options: { fabric: 'shm-fd' }, security: 'bound' },
  'shm-fd, sealed': {
    place: 'unix',
    fabric: 'shm-fd',
    options: { fabric: 'shm-fd', security: sealed },
    security: 'sealed',
  },
  tcp: { place: 'port', fabric: 'tcp', options: { fabric: 'tcp' } },
  'tcp with TLS': {
    place: 'port',
    fabric: 'tcp',
    options: { fabric: 'tcp', tls: { psk } },
    security: 'bound',
  },
  'tcp, sealed': {
    place: 'port',
    fabric: 'tcp',
    options: { fabric: 'tcp', tls: { psk }, security: sealed },
    security: 'sealed',
  },
  'what auto chooses': { place: 'port', fabric: 'shm', options: {} },
};

/** Returns the feature bits in a server's welcome. */
async function featuresOf(build) {
  const [{ encodeFrame, decodeFrame }, frames] = await Promise.all([
    ours('control/link.js'),
    ours('control/frames.js'),
  ]);
  const asked = await server(build, at.port(), { fabric: 'tcp' });
  const socket = connect(Number(asked.address.split(':')[1]), '127.0.0.1');
  const limits = { inflightMax: 1, messageMaxBytes: 65_536, slotBytes: 8192 };
  const { magic, versionMin } = frames;
  const hello = { type: 'hello', magic, version: versionMin, features: 0, limits, fabrics: [], identity: '' };
  socket.write(encodeFrame(hello));
  let bytes = Buffer.alloc(0);
  while (bytes.length < 4 || bytes.length < 4 + bytes.readUInt32LE(0))
    bytes = Buffer.concat([bytes, (await once(socket, 'data'))[0]]);
  socket.destroy();
  await asked.stop();
  const welcome = decodeFrame(bytes.subarray(4, 4 + bytes.readUInt32LE(0)));
  if (typeof welcome === 'string') throw new Error(`a server of ${build.name} answers with ${welcome}`);
  return welcome.features;
}

/**
 * Returns the version of a build's shared memory. Builds before 0.1.0 do not name it in TypeScript; they had
 * version 3.
 */
async function shmVersionOf(build) {
  const { fabrics } = await import(join(build.tree, 'dist/runtime/fabrics.js'));
  return fabrics.shm.version ?? 3;
}

/** Returns the expected result of a check, or undefined when it must pass. */
function expected(check, { secondSession }) {
  if (check !== 'serves' || secondSession) return undefined;
  return /UNIMPLEMENTED|^12: .*use the same rdma-rpc release on both sides/;
}

const otherShm = (one, other) =>
  new RegExp(`version ${one} .*version ${other}\\b.*use the same rdma-rpc release on both sides`);

/**
 * Runs one pair of builds over one fabric. Calls `report` with each check, and with the reason why the check
 * has failed, or undefined.
 */
async function pair(name, way, { client, server: serving, agreed }, report) {
  const what = `${name}: client of ${client.name}, server of ${serving.name}`;
  const listening = await server(serving, at[way.place](`upgrade-${process.pid}.sock`), way.options);
  try {
    const { fabric, security, results, log } = await checked(client, listening.address, way.options);
    const isRefused = !agreed.shm && way.options.fabric?.startsWith('shm') === true;
    if (isRefused) {
      const text = results.connected ?? 'it has connected';
      report(`${what}: is refused`, otherShm(client.shm, serving.shm).test(text) ? undefined : text);
      return;
    }
    for (const [check, error] of Object.entries(results)) {
      const wanted = expected(check, agreed);
      const isRight = wanted === undefined ? error === null : wanted.test(error ?? '');
      report(`${what}: ${check}`, isRight ? undefined : `${error ?? 'it has not failed'}\n${log}`);
    }
    const wanted = [agreed.shm ? way.fabric : 'tcp', way.security ?? security];
    const got = [fabric, security];
    report(`${what}: fabric and security`, `${got}` === `${wanted}` ? undefined : `${got}\n${log}`);
  } catch (error) {
    report(what, error.message);
  } finally {
    await listening.stop().catch((error) => report(`${what}: the server's end`, error.message));
  }
}

/** Checks whether `reader` finds the calls of processes of `build` in their counters pages, as `top` does. */
async function counted(reader, build, report) {
  const { readCounters } = await import(join(reader.tree, 'dist/runtime/counters/processes.js'));
  const serving = await server(build, at.port(), { fabric: 'shm' });
  const calling = await load(build, [serving.address], { fabric: 'shm' });
  try {
    // A page is written at most ten times a second.
    for (let i = 0; i < 5; ++i) await calling.line();
    for (const [side, { pid }] of Object.entries({ server: serving, client: calling })) {
      const [context] = readCounters(pid).contexts;
      const calls = context?.methods.reduce((sum, method) => sum + method.calls, 0) ?? 0;
      const what = `counters of a ${side} of ${build.name}, read by ${reader.name}`;
      report(what, calls > 0 ? undefined : `no call in ${JSON.stringify(context)}`);
    }
  } catch (error) {
    report(`counters of ${build.name}, read by ${reader.name}`, error.message);
  } finally {
    await calling.kill();
    await serving.kill();
  }
}

/** `report(name, why)` is called for each check, which has passed when `why` is undefined. */
export async function matrix({ today, before }, report) {
  const { feature } = await ours('control/frames.js');
  for (const build of [today, before]) {
    build.features = await featuresOf(build);
    build.shm = await shmVersionOf(build);
  }
  await counted(today, before, report);
  await counted(before, today, report);
  const common = today.features & before.features;
  const agreed = { shm: today.shm === before.shm, secondSession: (common & feature.reverse) !== 0 };
  for (const [name, way] of Object.entries(ways))
    for (const [client, serving] of [
      [before, today],
      [today, before],
    ])
      await pair(name, way, { client, server: serving, agreed }, report);
}
