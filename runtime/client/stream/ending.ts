/**
 * How a client's stream comes to its end: what it does next, by its state and by what of it is still on its
 * way. The application hears of the end when nothing can touch its memory any more and all that it waits for
 * is here; the session lets go of the stream when nothing of it is on its way.
 *
 * | state    | its OPEN | memory of a message | parts  | nothing |
 * |----------|----------|---------------------|--------|---------|
 * | open     | wait     | wait                | wait   | wait    |
 * | settled  |          | wait                | wait   | end     |
 * | given up | wait     | wait                | end    | end     |
 * | again    |          | wait                | wait   | repeat  |
 * | over     |          | linger              | linger | leave   |
 *
 * `end` tells the application, and the stream is `over`. `linger` gives the server time to answer the parts,
 * and then gives them up. `leave` frees the slot of the stream. `repeat` opens it anew. A state without a row
 * has nothing on its way, and an empty place does not occur.
 */

/**
 * - `new`: the application has not looked at it yet.
 * - `waiting`: for a connection with room; `opening`: its OPEN is being encoded. What a getter of the request
 *   does to the stream then is done when that is over.
 * - `open`: both sides may send.
 * - `settled`: the server has ended it, and what has been asked for still comes.
 * - `given up`: by the application, by a signal or by its deadline, or the session is lost.
 * - `again`: no handler has seen it, and it is opened once more.
 * - `over`: the application has been told; `left`: and its session has let go of it.
 */
export type StreamState =
  | 'new'
  | 'waiting'
  | 'opening'
  | 'open'
  | 'settled'
  | 'given up'
  | 'again'
  | 'over'
  | 'left';

/** What is on its way of a stream, the first of these that is. */
export type Outstanding = 'its OPEN' | 'memory' | 'parts' | 'nothing';

export type NextStep = 'wait' | 'end' | 'linger' | 'leave' | 'repeat';

type Row = Readonly<Record<Outstanding, NextStep>>;

const wait: Row = { 'its OPEN': 'wait', memory: 'wait', parts: 'wait', nothing: 'wait' };

const rows: Readonly<Record<StreamState, Row>> = {
  new: wait,
  waiting: wait,
  opening: wait,
  open: wait,
  settled: { ...wait, nothing: 'end' },
  'given up': { ...wait, parts: 'end', nothing: 'end' },
  again: { ...wait, nothing: 'repeat' },
  over: { ...wait, memory: 'linger', parts: 'linger', nothing: 'leave' },
  left: wait,
};

export function nextStep(state: StreamState, outstanding: Outstanding): NextStep {
  return rows[state][outstanding];
}
