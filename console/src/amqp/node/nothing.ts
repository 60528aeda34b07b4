/** Replaces Node's fs, net, tls, os and path in the bundle; the console uses none of them, because it speaks over WebSocket only. */
export default {};
