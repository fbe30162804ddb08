/**
 * Streams of responses that nobody reads any more and nobody has ended. connect-es gives its callers an
 * iterator without `return()`, so a loop left by `break` or an error says nothing: its stream would keep its
 * place, and its handler, for as long as the connection lives. What it has dropped is found by the garbage
 * collector; when streams wait for a place meanwhile, it is asked to look. Used by the transport, on its JS
 * thread.
 */
import { clockMs } from '../../clock.ts';
import { collectPauseMs } from '../../limits.ts';
import { type Collector, collector } from '../../native/collector.ts';
import { loadNative } from '../../native/native.ts';

type Messages = AsyncGenerator<unknown, void, undefined>;

/** Whose streams they are: the queue of a channel, as far as it matters here. */
export interface StreamPlaces {
  readonly openStreams: { readonly full: boolean } | undefined;
  readonly streams: { readonly size: number };
}

/** What connect-es holds, and in the end drops. */
class Held implements AsyncIterableIterator<unknown> {
  readonly #messages: Messages;
  constructor(messages: Messages) {
    this.#messages = messages;
  }
  [Symbol.asyncIterator](): this {
    return this;
  }
  next(): Promise<IteratorResult<unknown>> {
    return this.#messages.next();
  }
  return(): Promise<IteratorResult<unknown>> {
    return this.#messages.return();
  }
}

/** Of this thread: those that have begun and not ended. */
let open = 0;
/** Of those, found since the last collection that was asked for. */
let found = 0;
const dropped = new FinalizationRegistry<Messages>((messages) => {
  ++found;
  // One that has ended already takes no notice.
  messages.return().catch(() => undefined);
});

/** `messages` for connect-es: they are ended when they are dropped. */
export function endedWhenDropped(messages: Messages): AsyncIterable<unknown> {
  const counted = (async function* (): Messages {
    ++open;
    try {
      yield* messages;
    } finally {
      --open;
    }
  })();
  const held = new Held(counted);
  dropped.register(held, counted);
  return held;
}

function collectorFor(): Collector | undefined {
  try {
    loadNative(); // who has none has no streams either, and look() must not be told of that
    return collector();
  } catch {
    return undefined;
  }
}

let collect: Collector | undefined | 'not looked up' = 'not looked up';
let timer: NodeJS.Timeout | undefined;
let nextMs = 0;
/** Between two collections; longer while they find nothing. */
let pauseMs: number = collectPauseMs.first;

/**
 * A stream is about to be opened. While it has to wait for a place, and other streams might have been
 * dropped, there is a collection now and then: they share a tenth of the thread's time with those for calls
 * that wait for memory, and become rare when they find nothing.
 */
export function findDropped(places: StreamPlaces): void {
  if (places.openStreams?.full === true || places.streams.size > 0) schedule(places);
}

function schedule(places: StreamPlaces): void {
  if (collect === 'not looked up') collect = collectorFor();
  if (timer !== undefined || collect === undefined) return;
  timer = setTimeout(look, Math.max(1, nextMs - clockMs()), places, collect).unref();
}

function look(places: StreamPlaces, now: Collector): void {
  timer = undefined;
  if (places.streams.size === 0 || open === 0) return;
  const began = clockMs();
  // What is collected meanwhile for somebody else finds dropped streams, too.
  const waitMs = loadNative().collectionWaitMs();
  if (waitMs > 0) nextMs = began + waitMs;
  else {
    pauseMs = found > 0 ? collectPauseMs.first : Math.min(collectPauseMs.max, 2 * pauseMs);
    found = 0;
    now('all');
    const ended = clockMs();
    loadNative().collectionDone(ended - began);
    nextMs = ended + pauseMs;
  }
  schedule(places);
}
