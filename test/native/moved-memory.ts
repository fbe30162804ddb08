/**
 * Runs as a separate process for moved-memory.test.ts, `node moved-memory.js END`: a worker leases blocks,
 * moves their memory to the main thread and ends. This program reads dist, so setup must have run.
 */
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { Use } from '../../runtime/native/native.ts';
import { Loopback } from './loopback.ts';

type End = 'terminate' | 'exit' | 'return' | 'throw';
const bytes = 300_000;

/** Leases blocks in the ways that matter for Node, and posts the memory of some of them. */
function worker(end: End): void {
  const { native } = new Loopback('sim');
  const lease = () => native.blockBuffer(native.allocBlock(bytes, Use.application));
  const fill = (buffer: ArrayBuffer, value: number) => new Uint8Array(buffer).fill(value);

  const renewed = native.allocBlock(bytes, Use.application);
  native.blockBuffer(renewed);
  native.takeBlock(renewed);
  const again = lease();
  const fresh = lease();
  const kept = lease();
  const moved = [again, fresh].map((buffer, i) => {
    fill(buffer, i + 1);
    return (buffer as ArrayBuffer & { transfer(): ArrayBuffer }).transfer();
  });
  const used = lease();
  fill(used, 3);
  fill(kept, 4);
  parentPort?.postMessage([...moved, used], [...moved, used]);
  // The buffers that were not sent stay in use until the end.
  process.on('exit', () => kept.byteLength);
  if (end === 'exit') process.exit(0);
  if (end === 'throw') throw new Error('the worker ends by an error');
  if (end === 'terminate') setInterval(() => undefined, 1000);
}

/** Returns whether the memory still has the bytes of the worker and can be written by this thread. */
function intact(buffer: ArrayBuffer | undefined, value: number): boolean {
  if (buffer === undefined) return false;
  const view = new Uint8Array(buffer, 0, bytes);
  const right = view.every((byte) => byte === value);
  view.fill(9);
  return right && view.every((byte) => byte === 9);
}

if (isMainThread) {
  const end = process.argv[2] as End;
  const thread = new Worker(new URL(import.meta.url), { workerData: end });
  thread.on('error', () => undefined);
  const ended = once(thread, 'exit').catch(() => undefined);
  const [buffers] = (await once(thread, 'message')) as [ArrayBuffer[]];
  if (end === 'terminate') await thread.terminate();
  await ended;
  const [again, fresh, used] = buffers;
  console.log(`renewed ${intact(again, 1)}, new ${intact(fresh, 2)}, used before ${intact(used, 3)}`);
} else {
  worker(workerData as End);
}
