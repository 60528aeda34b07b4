'use strict';
// What the programs of these clients share: `node CLIENT.js THING JSON`; ../programs.py describes the things and reports.

const fs = require('fs');

const [thing, text] = process.argv.slice(2);
const options = JSON.parse(text);

function report(event, details) {
    process.stdout.write(JSON.stringify({ event, ...details }) + '\n');
}

function body(number) {
    return String(number).padStart(8, '0').padEnd(options.size, 'x');
}

// Notes what came of messages that were sent as body(0), body(1) and so on.
class Received {
    constructor() {
        this.count = 0;
        this.inOrder = true;
        this.numbers = new Set();
    }

    add(content) {
        const number = Number(content.slice(0, 8));
        this.inOrder = this.inOrder && number === this.count;
        this.count += 1;
        if (content === body(number)) this.numbers.add(number);
    }

    get details() {
        return { received: this.count, whole: this.numbers.size === this.count, in_order: this.inOrder };
    }
}

function certificates() {
    return fs.readFileSync(options.ca);
}

function fail(error) {
    report('failed', { why: String(error && (error.condition || error.message) || error) });
    process.exit(1);
}

process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

module.exports = { thing, options, report, body, Received, certificates, fail };
