/**
 * The demo's load: one size after the other, then all sizes at once. Each worker owns its keys, so it knows
 * the right answer to every Get, and checks it byte by byte. It runs in the client process.
 */
import { leaseOf } from 'rdma-rpc';
import type { KvClient } from './gen/kv.rdma.ts';
import { callMs as timeoutMs } from './patience.ts';
import { type CallRow, Recorder } from './recorder.ts';
import { checkValue, fillValue, nextRandom } from './values.ts';

export interface SizeClass {
  readonly label: string;
  readonly valueBytes: number;
  /** Number of calls in flight. */
  readonly workers: number;
  /** Number of operations of each worker. */
  readonly operations: number;
}

export interface LoadReport {
  rows: CallRow[];
  /** Descriptions of the first `errorsMax` errors. */
  errors: string[];
  elapsedMs: number;
}

/** Runs after each phase and during it, at most once per percent. */
export type Progress = (phase: string, done: number, total: number) => void;

const KiB = 1024;
const MiB = 1024 * KiB;
const keysPerWorker = 2;
const errorsMax = 10;

/**
 * Returns sizes for every way in which a payload can travel. `scale` multiplies the operations; with 1 the
 * load takes a few seconds.
 */
export function sizeClasses(scale: number): SizeClass[] {
  const size = (label: string, valueBytes: number, workers: number, operations: number): SizeClass => {
    return { label, valueBytes, workers, operations: Math.max(8, Math.round(operations * scale)) };
  };
  return [
    size('16 B', 16, 64, 2000),
    size('256 B', 256, 64, 1000),
    size('4 KiB', 4 * KiB, 32, 600),
    size('64 KiB', 64 * KiB, 16, 150),
    size('1 MiB', MiB, 8, 40),
    // Each worker has two keys. These two sizes together hold at most 192 MiB of the store's budget.
    size('16 MiB', 16 * MiB, 2, 12),
    size('64 MiB', 64 * MiB, 1, 8),
  ];
}

/**
 * Resolves when every worker has completed its operations and deleted its keys. It never rejects: errors are
 * in the report.
 */
export async function runLoad(
  kv: KvClient,
  sizes: readonly SizeClass[],
  progress: Progress,
): Promise<LoadReport> {
  const started = performance.now();
  const recorder = new Recorder();
  const errors: string[] = [];
  const phases = [...sizes.map((size) => [size]), sizes];
  for (const [index, phase] of phases.entries()) {
    const name = phase.length === 1 ? phase[0]!.label : 'all at once';
    const total = phase.reduce((sum, size) => sum + size.workers * size.operations, 0);
    let done = 0;
    const step = Math.ceil(total / 100);
    const onCall = (): void => {
      if (++done % step === 0 || done === total) progress(name, done, total);
    };
    const workers = phase.flatMap((size) =>
      Array.from({ length: size.workers }, (_, number) => {
        const context = { kv, recorder, errors, onCall, row: name };
        return new Worker(context, size, `${name}/${size.label}/${number}`, index * 1000 + number).run();
      }),
    );
    await Promise.all(workers);
  }
  return { rows: recorder.rows(), errors, elapsedMs: performance.now() - started };
}

interface WorkerContext {
  readonly kv: KvClient;
  readonly recorder: Recorder;
  readonly errors: string[];
  readonly onCall: () => void;
  /**
   * The line of the table to which the calls belong. Simultaneous large values make small calls wait, so the
   * last phase has lines of its own.
   */
  readonly row: string;
}

/**
 * The number of bytes that a call moved, and a check of its answer that is made after the clock has been
 * read.
 */
interface Done {
  readonly valueBytes: number;
  /** Returns undefined if the answer is right. */
  faultOf(): string | undefined;
}

/** Makes one call at a time on keys of its own, so that each Get must return the value of the last Put. */
class Worker {
  private readonly context: WorkerContext;
  private readonly size: SizeClass;
  private readonly name: string;
  /** The version that each key must have, or 0 when the key has no value. */
  private readonly versions = new Uint32Array(keysPerWorker);
  /**
   * The value of every Put. The runtime registers its memory once, and then finds the registration in its
   * cache.
   */
  private readonly value: Uint8Array;
  private lastVersion = 0;
  private random: number;

  constructor(context: WorkerContext, size: SizeClass, name: string, seed: number) {
    this.context = context;
    this.size = size;
    this.name = name;
    this.value = new Uint8Array(size.valueBytes);
    this.random = nextRandom(seed + 1);
  }

  async run(): Promise<void> {
    for (let i = 0; i < this.size.operations; i++) {
      const key = this.draw(keysPerWorker);
      const dice = this.draw(100);
      if (dice < 55) await this.attempt('Get', key);
      else if (dice < 92) await this.attempt('Put', key);
      else await this.attempt('Delete', key);
      this.context.onCall();
    }
    for (let key = 0; key < keysPerWorker; key++) await this.attempt('Delete', key);
  }

  private draw(below: number): number {
    this.random = nextRandom(this.random);
    return (this.random >>> 0) % below;
  }

  private async attempt(operation: 'Get' | 'Put' | 'Delete', key: number): Promise<void> {
    const calls = this.context.recorder.of(operation, this.context.row);
    const name = `${this.name}/${key}`;
    if (operation === 'Put') fillValue(this.value, name, this.lastVersion + 1);
    const from = performance.now();
    let wrong: string | undefined;
    try {
      const done = await this[operation](name, key);
      calls.record((performance.now() - from) * 1000);
      calls.bytes += done.valueBytes;
      wrong = done.faultOf();
    } catch (error) {
      calls.record((performance.now() - from) * 1000);
      wrong = error instanceof Error ? error.message : String(error);
    }
    if (wrong === undefined) return;
    calls.errors++;
    if (this.context.errors.length < errorsMax) this.context.errors.push(`${operation} ${name}: ${wrong}`);
  }

  private async Get(name: string, key: number): Promise<Done> {
    const answer = await this.context.kv.get({ key: name }, { timeoutMs });
    const faultOf = (): string | undefined => {
      try {
        return this.faultOf(answer, name, this.versions[key]!);
      } finally {
        // A large value is a view of registered memory. The memory is returned at once, so that the next
        // answer can use memory that is still in the CPU's caches.
        leaseOf(answer)?.release();
      }
    };
    return { valueBytes: answer.value.length, faultOf };
  }

  private faultOf(
    answer: { found: boolean; version: number; value: Uint8Array },
    name: string,
    version: number,
  ): string | undefined {
    if (answer.found !== (version !== 0)) return answer.found ? 'found what was deleted' : 'lost';
    if (!answer.found) return undefined;
    if (answer.version !== version) return `version ${answer.version} instead of ${version}`;
    if (answer.value.length !== this.size.valueBytes) return `${answer.value.length} bytes`;
    return checkValue(answer.value, name, version) ? undefined : 'wrong bytes';
  }

  private async Put(name: string, key: number): Promise<Done> {
    const version = ++this.lastVersion;
    const { replaced } = await this.context.kv.put({ key: name, version, value: this.value }, { timeoutMs });
    const had = this.versions[key] !== 0;
    this.versions[key] = version;
    const faultOf = () => (replaced === had ? undefined : `replaced is ${replaced}`);
    return { valueBytes: this.value.length, faultOf };
  }

  private async Delete(name: string, key: number): Promise<Done> {
    const { deleted } = await this.context.kv.delete({ key: name }, { timeoutMs });
    const had = this.versions[key] !== 0;
    this.versions[key] = 0;
    const faultOf = () => (deleted === had ? undefined : `deleted is ${deleted}`);
    return { valueBytes: 0, faultOf };
  }
}
