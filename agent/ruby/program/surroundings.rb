# frozen_string_literal: true

# What modules' Ruby finds around it without requiring it, and error messages as modules raise them.

require 'English'
require 'date'
require 'digest'
require 'set'
require 'time'
require 'yaml'
require_relative '../../../shared/ruby/channel'

# Libraries that Puppet has loaded and that modules use without requiring them.
{ Base64: 'base64', CGI: 'cgi', ERB: 'erb', Etc: 'etc', FileUtils: 'fileutils', Find: 'find', Forwardable: 'forwardable', IPAddr: 'ipaddr',
  Logger: 'logger', Open3: 'open3', OpenSSL: 'openssl', OpenStruct: 'ostruct', Pathname: 'pathname', Resolv: 'resolv',
  SecureRandom: 'securerandom', Shellwords: 'shellwords', Singleton: 'singleton', Socket: 'socket', StringIO: 'stringio',
  Tempfile: 'tempfile', Timeout: 'timeout', URI: 'uri', Zlib: 'zlib' }.each do |name, library|
  autoload(name, library)
end

# Its classes are in files of their own, which name it while they are read.
module Net
  { HTTP: 'net/http', HTTPResponse: 'net/http', HTTPError: 'net/http', HTTPSuccess: 'net/http', Protocol: 'net/protocol', FTP: 'net/ftp',
    HTTPRedirection: 'net/http', OpenTimeout: 'net/protocol', ReadTimeout: 'net/protocol' }.each { |name, library| autoload(name, library) }
end

# Messages are those that modules raise, without the lines of source and the suggestions that Ruby adds for people who write it.
[%w[ErrorHighlight CoreExt], %w[DidYouMean Correctable]].each do |names|
  added = names.inject(Object) { |outer, name| outer && outer.const_defined?(name) ? outer.const_get(name) : nil }
  added.send(:remove_method, :to_s) if added && added.method_defined?(:to_s, false)
end

module Bunraku
  OWN << File.dirname(File.realpath(__FILE__))
end
