/**
 * Tests the example script for bpftrace, on real processes over RDMA devices. The script must count the
 * events of these processes. The test is skipped when bpftrace is missing (set-up does not install it,
 * because it needs a compiler), and for users who are not allowed to trace.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { whyNot } from '../needs.ts';
import { serverDevice } from './pair.ts';

const place = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
/** The slowest guest needs less than this. */
const LIMIT_MS = 400_000;
const why = process.getuid?.() === 0 ? whyNot('tracing') : 'only root may trace';

describe.skipIf(why !== '')(`probes${why && ` (${why})`}`, () => {
  test('calls.bt counts each request of the demo at both of its ends', { timeout: LIMIT_MS }, async () => {
    const addon = process.env.RDMA_RPC_ADDON ?? place('build/Release/rdma_rpc.node');
    const tracer = spawn('bpftrace', [place('examples/bpftrace/calls.bt'), addon]);
    // Ends bpftrace even if the test fails; otherwise bpftrace would also trace later tests.
    onTestFinished(() => void tracer.kill('SIGKILL'));
    let out = '';
    const attached = new Promise<void>((resolve, reject) => {
      tracer.stdout.on('data', (bytes: Buffer) => {
        out += String(bytes);
        if (out.includes('Tracing calls')) resolve();
      });
      tracer.stderr.on('data', (bytes: Buffer) => {
        out += String(bytes);
      });
      tracer.on('exit', () => reject(new Error(out)));
    });
    await attached;
    const ended = once(tracer, 'close');
    const env = { ...process.env, RDMA_RPC_FABRIC: 'verbs', RDMA_RPC_DEVICE: serverDevice };
    const demo = spawnSync(process.execPath, [place('dist/examples/kv/demo.js'), '0'], {
      encoding: 'utf8',
      env,
      timeout: LIMIT_MS,
    });
    tracer.kill('SIGINT');
    await ended;
    expect(demo.status, demo.stderr).toBe(0);
    const counted = (map: string, key: number): number =>
      Number(new RegExp(`^@${map}\\[${key}\\]: (\\d+)$`, 'm').exec(out)?.[1]);
    const calls = Number(/^([\d,]+) calls in /m.exec(demo.stdout)![1]!.replaceAll(',', ''));
    const [request, response] = [1, 2];
    // One more call asks the server for its counters.
    expect(counted('frames_out', request)).toBeGreaterThanOrEqual(calls);
    expect(counted('frames_out', response)).toBeGreaterThanOrEqual(calls);
    expect(counted('frames_in', request)).toBe(counted('frames_out', request));
    expect(counted('frames_in', response)).toBe(counted('frames_out', response));
    const settled = [...out.matchAll(/^@calls\[\d+, [01]\]: (\d+)$/gm)].map(([, count]) => Number(count));
    expect(settled.reduce((sum, count) => sum + count)).toBe(2 * counted('frames_out', request));
    expect(out).toMatch(/^@call_us\[\d+\]: *$/m);
    expect(out).toMatch(/^@granted_bytes: *$/m);
  });
});
