/**
 * Starts the program that measures one side of a test (native/perf/program). Instructions go to the program's
 * stdin, one per line, and results come from its stdout. The program ends when this process closes the
 * program's stdin, or dies.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { addonPath, namedAddon } from '../../runtime/native/addon-path.ts';
import { PerfError } from './control.ts';
import type { PerfAddress, PerfLimits, PerfOptions, PerfOutcome, PerfStep } from './step.ts';

/** Version of the line format (native/perf/program/side.h). */
const lines = 2;
const file = 'rdma_rpc_perf';
/**
 * Time in ms for the program to end. After that time the program is killed, and a slow device is left to the
 * system.
 */
const endMs = 5000;

const remedies: Readonly<Record<string, string>> = {
  ENOENT: 'it belongs beside the addon: reinstall the package, or `rdma-rpc build-addon`',
  EACCES: 'it must be allowed to be executed, and so must the files of its file system (noexec)',
};

/**
 * In rdma-rpc-cli the program is in the package of the commands; otherwise it is beside the addon. When the
 * environment names an addon, the program is in the folder of that addon, as the plug-ins are.
 */
function programPath(addonFolder: string): string {
  if (namedAddon() !== undefined) return join(addonFolder, file);
  const platform = `${process.platform}-${process.arch}`;
  const own = fileURLToPath(new URL(`../../prebuilds/${platform}/${file}`, import.meta.url));
  return existsSync(own) ? own : join(addonFolder, file);
}

/** A line, as its first word and its fields. */
interface Said {
  readonly name: string;
  readonly values: URLSearchParams;
  readonly behind: Buffer;
}

type Word = string | number | bigint | boolean | undefined;

function lineOf(name: string, values: Readonly<Record<string, Word>>): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) if (value !== undefined) query.set(key, String(value));
  return `${name} ${query}\n`;
}

function outcomeOf({ values, behind }: Said): PerfOutcome {
  const number = (name: string): number => Number(values.get(name));
  const text = (name: string): string => values.get(name) ?? '';
  // Make a copy, because data in a Buffer may be unaligned.
  const latencyNs = new Uint32Array(new Uint8Array(behind).buffer);
  return {
    error: text('error'),
    messages: number('messages'),
    received: number('received'),
    elapsedNs: number('elapsedNs'),
    userNs: number('userNs'),
    systemNs: number('systemNs'),
    latencyNs,
    peakNs: number('peakNs'),
    corrupt: number('corrupt'),
    firstCorrupt: text('firstCorrupt'),
  };
}

export class Program {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #ended: Promise<void>;
  #came: Buffer[] = [];
  #size = 0;
  /** Number of bytes needed before parsing is tried again, because the data behind a line may be long. */
  #needed = 0;
  readonly #waiting = new Map<string, { take(said: Said): void; fail(error: PerfError): void }>();
  #error: PerfError | undefined;
  #opened: Said | undefined;

  private constructor(path: string, plugins: string) {
    const env = { ...process.env, RDMA_RPC_PLUGINS: plugins };
    this.#child = spawn(path, { stdio: ['pipe', 'pipe', 'inherit'], env });
    this.#child.stdout.on('data', (chunk: Buffer) => this.#take(chunk));
    // A write error is reported as the end of the program, so it is ignored here.
    this.#child.stdin.on('error', () => undefined);
    this.#ended = new Promise((resolve) => {
      this.#child.once('error', ({ code = '' }: NodeJS.ErrnoException) => {
        this.#fail(`cannot start ${path}: ${remedies[code] ?? code} (${code})`);
        resolve();
      });
      this.#child.once('close', (code, signal) => {
        this.#fail(`the program that measures, ${path}, has ended (${signal ?? `exit code ${code}`})`);
        resolve();
      });
    });
  }

  /** Throws a PerfError when this machine or its device cannot run the test. */
  static async open(options: PerfOptions): Promise<Program> {
    let plugins: string;
    try {
      plugins = dirname(addonPath());
    } catch (error) {
      throw new PerfError((error as Error).message.replace(/^rdma-rpc: /, ''));
    }
    const program = new Program(programPath(plugins), plugins);
    try {
      program.#opened = await program.#ask('opened', lineOf('open', { lines, ...options }));
    } catch (error) {
      await program.close();
      throw error;
    }
    return program;
  }

  #value(name: string): string {
    return this.#opened?.values.get(name) ?? '';
  }

  get limits(): PerfLimits {
    return {
      device: this.#value('device'),
      messageMax: Number(this.#value('messageMax')),
      atomic: this.#value('atomic') === 'true',
    };
  }

  get address(): PerfAddress {
    return {
      addr: BigInt(this.#value('addr')),
      bytes: BigInt(this.#value('bytes')),
      rkey: Number(this.#value('rkey')),
      queuePairs: this.#value('queuePairs')
        .split(',')
        .map((hex) => new Uint8Array(Buffer.from(hex, 'hex'))),
    };
  }

  /**
   * Resolves to an empty text, or to the reason of a failure. The active side calls it after the passive
   * side.
   */
  async connect(peer: PerfAddress): Promise<string> {
    const queuePairs = peer.queuePairs.map((each) => Buffer.from(each).toString('hex')).join(',');
    const { addr, bytes, rkey } = peer;
    const said = await this.#ask('connected', lineOf('connect', { addr, bytes, rkey, queuePairs }));
    return said.values.get('why') ?? '';
  }

  async prepare(step: PerfStep): Promise<void> {
    await this.#ask('prepared', lineOf('prepare', { ...step }));
  }

  /**
   * Runs a step in the program, and resolves to its outcome. `measured` is called with the number of this
   * side's messages when this side has finished measuring. The step ends after stop() or an error.
   */
  async run(step: PerfStep, measured: (messages: number) => void): Promise<PerfOutcome> {
    // If the program fails, the call that waits for its end reports the error.
    this.#wait('measured').then(
      ({ values }) => measured(Number(values.get('messages'))),
      () => undefined,
    );
    const ended = outcomeOf(await this.#ask('ended', lineOf('run', { ...step })));
    this.#waiting.delete('measured');
    return ended;
  }

  /** Stops the step: the peer has finished, and has sent this number of messages in it. */
  stop(expected: number): void {
    this.#child.stdin.write(lineOf('stop', { expected }));
  }

  /**
   * Checks after a step the bytes that the peer has written to this memory. `sent` is the number of the
   * peer's messages on each queue pair, in all steps.
   */
  async checkWritten(step: PerfStep, sent: number): Promise<PerfOutcome> {
    return outcomeOf(await this.#ask('checked', lineOf('check', { ...step, sent })));
  }

  /** Resolves when the program has ended. */
  async close(): Promise<void> {
    this.#child.stdin.end();
    const late = setTimeout(() => this.#child.kill('SIGKILL'), endMs);
    await this.#ended;
    clearTimeout(late);
  }

  #ask(answer: string, line: string): Promise<Said> {
    const said = this.#wait(answer);
    this.#child.stdin.write(line);
    return said;
  }

  #wait(name: string): Promise<Said> {
    if (this.#error !== undefined) return Promise.reject(this.#error);
    return new Promise((take, fail) => this.#waiting.set(name, { take, fail }));
  }

  #fail(why: string): void {
    this.#error ??= new PerfError(why);
    for (const { fail } of this.#waiting.values()) fail(this.#error);
    this.#waiting.clear();
  }

  #take(chunk: Buffer): void {
    this.#came.push(chunk);
    this.#size += chunk.length;
    while (this.#size > 0 && this.#size >= this.#needed) {
      const all = Buffer.concat(this.#came);
      this.#came = [all];
      const end = all.indexOf('\n');
      if (end < 0) return;
      const line = all.toString('utf8', 0, end);
      const space = line.includes(' ') ? line.indexOf(' ') : line.length;
      const values = new URLSearchParams(line.slice(space + 1));
      this.#needed = end + 1 + Number(values.get('bytesBehind') ?? 0);
      if (this.#size < this.#needed) return;
      const rest = all.subarray(this.#needed);
      const behind = all.subarray(end + 1, this.#needed);
      this.#came = [rest];
      this.#size = rest.length;
      this.#needed = 0;
      this.#hear({ name: line.slice(0, space), values, behind });
    }
  }

  #hear(said: Said): void {
    if (said.name === 'failed') this.#fail(said.values.get('why') ?? '');
    const waiting = this.#waiting.get(said.name);
    this.#waiting.delete(said.name);
    waiting?.take(said);
  }
}
