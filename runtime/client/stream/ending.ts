/**
 * The end of a client's stream. The next action of the stream depends on its state and on the frames that are
 * still in flight. The application gets the end when two conditions hold: nothing can access the
 * application's memory any more, and everything that it waits for has arrived. The session releases the
 * stream when no frame of the stream is in flight.
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
 * parts, and then cancels them. `leave` frees the slot of the stream. `repeat` opens the stream again. In
 * states that are not in the table, no frame is in flight. An empty cell is a combination that cannot occur.
 */

/**
 * - `new`: the application has not read the stream yet.
 * - `waiting`: the stream waits for a connection with room. `opening`: its OPEN is being encoded. If a getter
 *   of the request acts on the stream, the action is deferred until the OPEN is encoded.
 * - `open`: both sides may send.
 * - `settled`: the server has ended the stream, and requested parts still arrive.
 * - `given up`: the stream was cancelled by the application, by a signal or by its deadline, or the session
 *   is lost.
 * - `again`: no handler has seen the stream, and it will be opened a second time.
 * - `over`: the application has been notified. `left`: the session has also released the stream.
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

/**
 * The part of a stream that is still in flight. When several kinds of frames are in flight, the state has the
 * name of the first in this list.
 */
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
