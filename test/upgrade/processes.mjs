/**
 * Starts the processes of the tests of upgrades: servers, clients that check, and clients that call without
 * pause.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const limitMs = 180_000;

/**
 * A program of a build, with its output lines and its end. When the time limit of the program has passed, the
 * program is killed, and everything that waits for it fails.
 */
class Program {
  /** The line that it has printed last. */
  last = '';
  errors = '';
  #child;
  #waiting = [];
  #ended;

  constructor(build, file, args) {
    this.name = `${file} of ${build.name}`;
    this.#child = spawn(process.execPath, [build.program(file), ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: limitMs,
      killSignal: 'SIGKILL',
    });
    this.#child.stderr.on('data', (chunk) => {
      this.errors += chunk;
    });
    createInterface(this.#child.stdout).on('line', (line) => {
      this.last = line;
      for (const waiting of this.#waiting.splice(0)) waiting.resolve(line);
    });
    this.#ended = new Promise((resolve) =>
      this.#child.on('close', (code, signal) => resolve(code ?? signal)),
    );
    void this.#ended.then((code) => {
      for (const waiting of this.#waiting.splice(0)) waiting.reject(this.#failed(code));
    });
  }

  #failed(code) {
    return new Error(`${this.name} ended with ${code}: ${this.last} ${this.errors.slice(-2000)}`);
  }

  get pid() {
    return this.#child.pid;
  }

  /** Resolves to the next line. Rejects when the process ends first. */
  line() {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** Resolves to the last line, as JSON. Rejects when the program does not end successfully. */
  async result() {
    const code = await this.#ended;
    if (code !== 0) throw this.#failed(code);
    return JSON.parse(this.last);
  }

  /** Asks the program to end. */
  stop() {
    this.#child.kill('SIGTERM');
    return this.result();
  }

  kill() {
    this.#child.kill('SIGKILL');
    return this.#ended;
  }
}

/** Starts a server of that build. Resolves when it listens, at `program.address`. */
export async function server(build, address, options) {
  const program = new Program(build, 'server.mjs', [address, JSON.stringify(options)]);
  program.address = await program.line();
  return program;
}

/** Makes every check of client.mjs. */
export async function checked(build, address, options) {
  const program = new Program(build, 'client.mjs', [address, JSON.stringify(options)]);
  return { ...(await program.result()), log: program.errors };
}

/** Starts a client of that build that calls without pause. */
export async function load(build, addresses, options) {
  const program = new Program(build, 'load.mjs', [addresses.join(','), JSON.stringify(options)]);
  await program.line();
  return program;
}
