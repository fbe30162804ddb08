/**
 * The part of a Redis server that the example needs: SET, GET and PING of RESP, without a database.
 */
import type { Socket } from 'rdma-rpc/socket';

/**
 * Reads one command, which is an array of bulk strings. Returns the command's words and the text behind it,
 * or undefined if more text must arrive.
 */
function command(text: string): { words: string[]; rest: string } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text);
  if (head === null) return undefined;
  let at = head[0].length;
  const words: string[] = [];
  for (let i = 0; i < Number(head[1]); i++) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at));
    if (size === null) return undefined;
    at += size[0].length;
    const end = at + Number(size[1]);
    if (text.length < end + 2) return undefined;
    words.push(text.slice(at, end));
    at = end + 2;
  }
  return { words, rest: text.slice(at) };
}

export function scriptedRedis(socket: Socket): void {
  const values = new Map<string, string>();
  let text = '';
  socket.setEncoding('latin1');
  socket.on('error', () => undefined);
  socket.on('data', (chunk: string) => {
    text += chunk;
    for (let next = command(text); next !== undefined; next = command(text)) {
      text = next.rest;
      const [name = '', key = '', value = ''] = next.words;
      const found = values.get(key);
      if (name.toUpperCase() === 'GET') {
        socket.write(found === undefined ? '$-1\r\n' : `$${found.length}\r\n${found}\r\n`);
      } else if (name.toUpperCase() === 'SET') {
        values.set(key, value);
        socket.write('+OK\r\n');
      } else {
        socket.write('+PONG\r\n');
      }
    }
  });
}
