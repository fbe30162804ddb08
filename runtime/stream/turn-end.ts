/**
 * Runs things when the JS of this turn has come to rest: all promises that could go on have gone on. Stream
 * writers collect until then, so that messages produced together travel together. One list per JS thread.
 */

export interface TurnListener {
  onTurnEnd(): void;
}

let waiting: TurnListener[] = [];

function run(): void {
  const listeners = waiting;
  waiting = [];
  for (const listener of listeners) listener.onTurnEnd();
}

// A tick that a microtask asks for comes after the last microtask.
function afterMicrotasks(): void {
  process.nextTick(run);
}

/** Calls `listener.onTurnEnd()` once. It must not throw. */
export function atTurnEnd(listener: TurnListener): void {
  waiting.push(listener);
  if (waiting.length === 1) queueMicrotask(afterMicrotasks);
}
