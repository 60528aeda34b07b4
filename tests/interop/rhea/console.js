'use strict';
// A web console as the router sees it: `node console.js JSON`. Over a WebSocket it opens one dynamic receiver and one
// anonymous sender, sends the given requests, ten under way at most, and reports the replies as one line.
// ../consoles.py describes the JSON.

const fs = require('fs');
const rhea = require('rhea');
const WebSocket = require('ws');

const AT_ONCE = 10;
const options = JSON.parse(process.argv[2]);

function report(details) {
    process.stdout.write(JSON.stringify(details, (_, value) => (value === undefined ? null : value)) + '\n');
}

// Logs in as a browser does: TLS has the certificates, and EXTERNAL is chosen because the listener offers it.
function login() {
    if (options.external) {
        const external = { start: (answer) => answer(undefined, ''), step: (_, answer) => answer(undefined, '') };
        return { sasl_mechanisms: { EXTERNAL: () => external } };
    }
    return { username: options.username || 'anonymous', password: options.password, token: options.token };
}

function way() {
    const open = rhea.websocket_connect(WebSocket);
    const file = (name) => options[name] && fs.readFileSync(options[name]);
    const tls = { ca: file('ca'), cert: file('cert'), key: file('key') };
    const headers = options.origin ? { origin: options.origin } : {};
    return { connection_details: open(options.url, [options.subprotocol], { ...tls, ...headers }) };
}

const container = rhea.create_container();
const connection = container.connect({
    ...way(), ...login(), reconnect: false, properties: { console_identifier: 'Dispatch console' },
});
const waiting = options.requests.map((request, number) => ({ ...request, correlation_id: String(number) }));
const replies = [];
let receiver;
let sender;
let underWay = 0;

function sendMore() {
    while (waiting.length && underWay < AT_ONCE && sender.sendable()) {
        underWay += 1;
        sender.send({ ...waiting.shift(), reply_to: receiver.source.address });
    }
}

connection.on('connection_open', () => {
    receiver = connection.open_receiver({ source: { dynamic: true } });
});
connection.on('receiver_open', () => {
    sender = connection.open_sender();
});
connection.on('sendable', sendMore);
connection.on('message', ({ message }) => {
    underWay -= 1;
    const { statusCode, statusDescription } = message.application_properties;
    replies[Number(message.correlation_id)] = { status: statusCode, description: statusDescription, body: message.body };
    if (replies.filter(Boolean).length < options.requests.length) return sendMore();
    report({ replies, reply_to: receiver.source.address });
    connection.close();
});

function failed(error) {
    if (replies.filter(Boolean).length === options.requests.length) return;
    report({ failed: String((error && (error.description || error.message)) || error) });
    process.exit(0);
}
connection.on('connection_error', () => failed(connection.error));
connection.on('disconnected', (context) => failed(context.error || 'disconnected'));
container.on('error', failed);
