/** The WebSocket below rhea, which would send each frame as a message of its own. */

/**
 * Open a WebSocket that sends what is written in one turn as one message: the router reads the requests of a turn together, and
 * answers them together.
 */
export function joiningSocket(url: string, protocols: string[]): WebSocket {
  const socket = new WebSocket(url, protocols);
  const [send, close] = [socket.send.bind(socket), socket.close.bind(socket)];
  let unsent: Uint8Array[] = [];
  const flush = (): void => {
    const joined = Buffer.concat(unsent);
    unsent = [];
    if (joined.length > 0) send(Uint8Array.from(joined));
  };
  return Object.assign(socket, {
    send: (octets: Uint8Array): void => {
      if (unsent.push(octets) === 1) queueMicrotask(flush);
    },
    close: (): void => {
      flush();
      close();
    },
  });
}
