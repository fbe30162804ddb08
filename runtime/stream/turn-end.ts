/**
 * Runs listeners when all promises that can continue in this event-loop iteration have continued. Stream
 * writers collect messages until then, so that messages produced together are sent together. Each JS thread
 * has one list.
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

// A callback of `process.nextTick` that is scheduled in a microtask runs after the last microtask.
function afterMicrotasks(): void {
  process.nextTick(run);
}

/** Calls `listener.onTurnEnd()` once. The listener must not throw. */
export function atTurnEnd(listener: TurnListener): void {
  waiting.push(listener);
  if (waiting.length === 1) queueMicrotask(afterMicrotasks);
}
