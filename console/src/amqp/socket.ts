/** The WebSocket below rhea, which would send each frame as a message of its own. */

/** A frame without a body, which only shows that its sender is alive (AMQP 2.4.5). */
const HEARTBEAT = [0, 0, 0, 8, 2, 0, 0, 0] as const;

/**
 * Open a WebSocket that sends all frames of one turn as one message: the router reads the requests of a turn together, and
 * answers them together. It answers each heartbeat with one, because a browser delays the timers of a hidden page by up to a
 * minute, and the router would close the connection before rhea's next heartbeat.
 */
export function batchingSocket(url: string, protocols: string[]): WebSocket {
  const socket = new WebSocket(url, protocols);
  const [send, close] = [socket.send.bind(socket), socket.close.bind(socket)];
  let unsent: Uint8Array[] = [];
  const flush = (): void => {
    const joined = Buffer.concat(unsent);
    unsent = [];
    if (joined.length > 0) send(Uint8Array.from(joined));
  };
  const write = (bytes: Uint8Array): void => {
    if (unsent.push(bytes) === 1) queueMicrotask(flush);
  };
  socket.addEventListener("message", ({ data }: MessageEvent<ArrayBuffer>) => {
    const received = new Uint8Array(data);
    if (received.length === HEARTBEAT.length && HEARTBEAT.every((byte, at) => received[at] === byte)) write(received);
  });
  return Object.assign(socket, {
    send: write,
    close: (): void => {
      flush();
      close();
    },
  });
}
