/**
 * Contains code that the tests of this folder and of test/runtimes run outside of vitest, in processes (`node
 * programs.js NAME`) and in worker threads (a Worker with `workerData: NAME`). This file reads dist, so setup
 * must have run.
 */
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { Use } from '../../runtime/native/native.ts';
import { Loopback } from './loopback.ts';

const large = new Uint8Array(200_000).fill(7);
/** Handles of the addon do not keep a process alive, so an interval does. */
const stayAlive = () => setInterval(() => undefined, 1000);

const programs: Record<string, () => void | Promise<void>> = {
  /** Runs a callback that throws. The error must appear as an uncaught exception. */
  'callback-throws': () => {
    stayAlive();
    const loopback = new Loopback('sim');
    loopback.onRequest = () => {
      throw new Error('thrown in the events callback');
    };
    process.on('uncaughtException', (error) => {
      console.log(`caught: ${error.message}`);
      process.exit(0);
    });
    loopback.start(new Uint8Array(8));
  },
  'exit-with-calls-in-flight': () => {
    const loopback = new Loopback('sim');
    loopback.onRequest = () => undefined;
    for (let i = 0; i < 8; i += 1) loopback.start(i % 2 === 0 ? large : new Uint8Array(8));
    setImmediate(() => process.exit(0));
  },
  'exit-with-calls-in-flight-shm': () => {
    const loopback = new Loopback('shm');
    loopback.onRequest = () => undefined;
    for (let i = 0; i < 8; i += 1) loopback.start(i % 2 === 0 ? large : new Uint8Array(8));
    setImmediate(() => process.exit(0));
  },
  'end-without-close': () => {
    new Loopback('sim').start(large);
  },
  'close-in-callback': () => {
    stayAlive();
    const loopback = new Loopback('sim');
    loopback.onRequest = () => {
      loopback.native.close();
      setTimeout(() => {
        console.log('closed in the callback');
        process.exit(0);
      }, 10);
    };
    loopback.start(large);
  },
  /** Makes calls without a pause, until the thread is terminated. */
  'calls-for-ever': () => {
    stayAlive();
    const loopback = new Loopback('sim');
    const again = async (message: Uint8Array) => {
      for (;;) await loopback.start(message).end;
    };
    void again(new Uint8Array(32));
    void again(large);
    void loopback.start(new Uint8Array(8)).end.then(() => parentPort?.postMessage('running'));
  },
  'threads-terminated': async () => {
    for (let i = 0; i < 24; i += 1) {
      const worker = new Worker(new URL(import.meta.url), { workerData: 'calls-for-ever' });
      if (i % 8 !== 0) await once(worker, 'message');
      await worker.terminate();
    }
    console.log('terminated');
  },
  /** This needs --expose-gc if the JS runtime itself offers no function for it. */
  'leases-collected': async () => {
    const { native } = new Loopback('sim');
    const { Bun, gc } = globalThis as { Bun?: { gc(now: boolean): void }; gc?: () => void };
    (() => {
      for (let i = 0; i < 20; i += 1) native.blockBuffer(native.allocBlock(5000, Use.application));
    })();
    while (native.stats().arenaLeasedBlocks > 0) {
      if (Bun === undefined) gc?.();
      else Bun.gc(true);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    native.close();
    console.log('collected');
  },
  /** Each call finds the JS thread asleep, and must wake it. */
  'calls-now-and-then': async () => {
    const alive = stayAlive();
    const loopback = new Loopback('shm');
    let sleeps = 0;
    for (let i = 0; i < 20; i += 1) {
      while (loopback.native.stats().sleeps === sleeps)
        await new Promise((resolve) => setTimeout(resolve, 1));
      ({ sleeps } = loopback.native.stats());
      await loopback.start(i % 2 === 0 ? large : new Uint8Array(8)).end;
    }
    console.log('slept and woke');
    loopback.native.close();
    clearInterval(alive);
  },
};

const name = isMainThread ? process.argv[2] : (workerData as string);
await programs[name ?? '']?.();
