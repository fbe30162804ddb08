/** The processes of a benchmark, which answer by messages. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** Resolves with the next message of a process. Rejects when the process ends first. */
export async function answer<T>(child: ChildProcess): Promise<T> {
  const settled = new AbortController();
  const { signal } = settled;
  try {
    const [message] = await Promise.race([
      once(child, 'message', { signal }),
      once(child, 'exit', { signal }).then(() => Promise.reject(new Error('a process has ended'))),
    ]);
    return message as T;
  } finally {
    // Remove the listeners. A process that is asked many times would otherwise accumulate the listeners of
    // all answers.
    settled.abort();
  }
}

/** Kills the process, and resolves when it has ended. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
