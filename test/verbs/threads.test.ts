/**
 * Tests threads that end with all objects open. Nothing may crash, independent of what the threads wait for.
 */
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';

const entry = new URL('../../dist/bundle/verbs.js', import.meta.url).href;
const endings = ['terminated', 'exit', 'returns'] as const;

const program = (fabric: string, ending: string): string => `
  const { parentPort } = require('node:worker_threads');
  import(${JSON.stringify(entry)}).then(async ({ openDevice, RecvBatch, SendBatch }) => {
    const open = (role) => {
      const device = openDevice(${JSON.stringify(fabric)});
      const pd = device.allocPd();
      const cq = device.createCq();
      const qp = pd.createQp({ type: 'rc', cq, role });
      const mr = pd.regMr(pd.allocBuffer(4096), 7);
      qp.postRecv(new RecvBatch(1).recv(1, mr));
      return { device, pd, cq, qp, mr };
    };
    const a = open('connect'), b = open('accept');
    globalThis.kept = [a, b];
    await Promise.all([a.qp.connect(b.qp.address), b.qp.accept(a.qp.address)]);
    a.qp.post(new SendBatch(1).send(2).sge(a.mr, 0, 8));
    const shared = a.pd.regMr(new SharedArrayBuffer(64), 7);
    globalThis.kept.push(shared, a.pd.regMr(new ArrayBuffer(64), 7));
    const ending = ${JSON.stringify(ending)};
    if (ending !== 'returns') for (const { cq } of [a, b]) (async () => { for await (const _ of cq); })();
    parentPort.postMessage('open');
    if (ending === 'exit') setImmediate(() => process.exit(0));
  });
`;

test.each(['sim', 'shm', 'tcp'].flatMap((fabric) => endings.map((ending) => [fabric, ending] as const)))(
  'on %s: a thread that ends by %s',
  async (fabric, ending) => {
    const worker = new Worker(program(fabric, ending), { eval: true });
    const ended = new Promise<number>((resolve) => worker.once('exit', resolve));
    await new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
    if (ending === 'terminated') await worker.terminate();
    expect(await ended).toBe(ending === 'terminated' ? 1 : 0);
  },
);
