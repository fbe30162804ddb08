/** Processes of a benchmark that answer by messages. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** The next message of a process; rejects when it ends first. */
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
    // A process that is asked many times would collect the listeners of all answers.
    settled.abort();
  }
}

/** Kills it, and resolves when it has gone. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
