/**
 * Measures post and poll of a SEND of 32 bytes through `rdma-rpc/verbs`, beside the same loop in C++ on the
 * fabrics (post_poll.cc). Both ends are in one thread. It prints a table with medians. Each round runs both
 * programs, one after the other.
 *
 *   cmake -B build/bench -DRDMA_RPC_BENCH=ON && cmake --build build/bench --target post_poll
 *   node dist/bench/verbs/post-poll.js [DEVICE...]     default: sim shm; in a guest: rxe0
 */
import { execFileSync } from 'node:child_process';
import { Access, Completions, openDevice, RecvBatch, SendBatch, SendFlags, WcStatus } from 'rdma-rpc/verbs';

const program = 'build/bench/post_poll';
const [...devices] = process.argv.slice(2);
if (devices.length === 0) devices.push('sim', 'shm');
const bytes = 32;
const isSoftware = (device: string): boolean => ['sim', 'shm'].includes(device);
/** A NIC of the kernel in an emulated guest takes 50 us for a SEND. */
const sendsOf = (device: string): number => (isSoftware(device) ? 400_000 : 16_000);
const rounds = 5;
/**
 * Time in milliseconds before the first measured round. In an emulated guest it takes V8 seconds until all
 * functions of the loop are compiled, and an interpreted call takes 20 times as long there.
 */
const warmUpMs = (device: string): number => (isSoftware(device) ? 3000 : 15_000);

function open(fabric: string, role: 'connect' | 'accept') {
  const device = openDevice(fabric);
  const pd = device.allocPd();
  const cq = device.createCq();
  const qp = pd.createQp({ type: 'rc', cq, role });
  const mr = pd.regMr(pd.allocBuffer(4096), Access.localWrite);
  return { device, pd, cq, qp, mr };
}

async function ours(fabric: string, batch: number): Promise<() => number> {
  const a = open(fabric, 'connect');
  const b = open(fabric, 'accept');
  await Promise.all([a.qp.connect(b.qp.address), b.qp.accept(a.qp.address)]);
  const sends = new SendBatch(batch);
  const receives = new RecvBatch(batch);
  for (let i = 0; i < batch; ++i) {
    sends.send(i, SendFlags.signaled | SendFlags.inline).sge(a.mr, i * bytes, bytes);
    receives.recv(i, b.mr, i * bytes, bytes);
  }
  const into = new Completions(32);
  const take = (cq: typeof a.cq): void => {
    for (let left = batch; left > 0; ) {
      const got = cq.poll(into);
      for (let i = 0; i < got; ++i)
        if (into.status(i) !== WcStatus.success) throw new Error(`status ${into.status(i)}`);
      left -= got;
    }
  };
  const sendsOfRun = sendsOf(fabric);
  return () => {
    const begin = process.hrtime.bigint();
    for (let done = 0; done < sendsOfRun; done += batch) {
      b.qp.postRecv(receives);
      a.qp.post(sends);
      take(b.cq);
      take(a.cq);
    }
    return Number(process.hrtime.bigint() - begin) / sendsOfRun;
  };
}

const theirs = (fabric: string, batch: number): number =>
  Number(
    execFileSync(program, [fabric, String(batch), String(sendsOf(fabric) / batch)], { encoding: 'utf8' }),
  );

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

console.log('| device | requests in a post | C++ | rdma-rpc/verbs | / C++ |');
console.log('|---|---:|---:|---:|---:|');
for (const fabric of devices) {
  for (const batch of [1, 16]) {
    const run = await ours(fabric, batch);
    for (const end = Date.now() + warmUpMs(fabric); Date.now() < end; ) run();
    const both = Array.from({ length: rounds }, () => [theirs(fabric, batch), run()] as const);
    const own = median(both.map(([, ns]) => ns));
    const native = median(both.map(([ns]) => ns));
    console.log(
      `| ${fabric} | ${batch} | ${native.toFixed(0)} ns | ${own.toFixed(0)} ns | ${(own / native).toFixed(2)} × |`,
    );
  }
}
process.exit();
