/** Stands in for Node's fs, net, tls, os and path, which the console never reaches: it speaks over WebSocket only. */
export default {};
