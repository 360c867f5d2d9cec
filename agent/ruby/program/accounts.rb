# frozen_string_literal: true

module Puppet
  module Util
    # Running as another account, with its groups.
    module SUIDManager
      module_function

      # Runs a block with the effective rights of an account.
      def asuser(uid = nil, gid = nil)
        return yield unless Process.euid.zero? && (uid || gid)

        group = Process.egid
        groups = Process.groups
        begin
          change_privileges(uid, gid)
          yield
        ensure
          Process::Sys.seteuid(0)
          Process::Sys.setegid(group)
          Process.groups = groups
        end
      end

      # Takes over the rights of an account; a user without a group has the groups of its own. Permanently: there is no way back.
      def change_privileges(uid = nil, gid = nil, permanently = false)
        return unless uid || gid

        user = uid && POSIX.uid(uid)
        raise Puppet::Error, "Invalid user: #{uid}" if uid && !user

        change_group(gid || Etc.getpwuid(user).gid, permanently)
        change_user(user, permanently) if user
      end

      def change_group(group, permanently = false)
        gid = POSIX.gid(group)
        raise Puppet::Error, "Invalid group: #{group}" unless gid

        permanently ? Process::GID.change_privilege(gid) : Process::Sys.setegid(gid)
      end

      def change_user(user, permanently = false)
        uid = POSIX.uid(user)
        return if uid == Process.euid

        initgroups(uid)
        permanently ? Process::UID.change_privilege(uid) : Process::Sys.seteuid(uid)
      end

      def initgroups(uid)
        account = Etc.getpwuid(uid)
        Process.initgroups(account.name, account.gid)
      end

      def run_and_capture(command, uid = nil, gid = nil)
        output = Puppet::Util::Execution.execute(command, failonfail: false, combine: true, uid: uid, gid: gid)
        [output, output.exitstatus]
      end
    end
  end
end
