/**
 * The end of a client's stream: its next action, by its state and by what is still in flight. The application
 * gets the end when nothing can touch its memory any more and everything that it waits for has arrived. The
 * session releases the stream when nothing of it is in flight.
 *
 * | state    | its OPEN | memory of a message | parts  | nothing |
 * |----------|----------|---------------------|--------|---------|
 * | open     | wait     | wait                | wait   | wait    |
 * | settled  |          | wait                | wait   | end     |
 * | given up | wait     | wait                | end    | end     |
 * | again    |          | wait                | wait   | repeat  |
 * | over     |          | linger              | linger | leave   |
 *
 * `end` notifies the application, and the stream is `over`. `linger` gives the server time to answer the
 * parts, and then cancels them. `leave` frees the slot of the stream. `repeat` opens it again. States that
 * are not in the table have nothing in flight, and empty cells do not occur.
 */

/**
 * - `new`: the application has not read it yet.
 * - `waiting`: for a connection with room. `opening`: its OPEN is being encoded; actions of a getter of the
 *   request on the stream are deferred until that has finished.
 * - `open`: both sides may send.
 * - `settled`: the server has ended it, and requested parts still arrive.
 * - `given up`: cancelled by the application, by a signal or by its deadline, or the session is lost.
 * - `again`: no handler has seen it, and it will be opened a second time.
 * - `over`: the application has been notified. `left`: in addition, its session has released it.
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

/** The part of a stream that is in flight; the first of these that applies. */
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
